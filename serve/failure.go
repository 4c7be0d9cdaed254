package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// failure is the error of a request, as it is told.
type failure struct {
	status  int
	message string
	param   string // the field that it is about; "" is none
	code    string
}

func (f *failure) Error() string { return f.message }

// invalid is a request that cannot be served as it is.
func invalid(param, text string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, param: param, message: fmt.Sprintf(text, args...)}
}

// kind is the word for a failure in OpenAI's API, and in Anthropic's.
func (f *failure) kind(anthropic bool) string {
	switch {
	case f.status == http.StatusUnauthorized:
		return "authentication_error"
	case f.status == http.StatusNotFound && anthropic:
		return "not_found_error"
	case f.status == http.StatusRequestEntityTooLarge && anthropic:
		return "request_too_large"
	case f.status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case f.status == http.StatusServiceUnavailable && anthropic:
		return "overloaded_error"
	case f.status >= 500 && anthropic:
		return "api_error"
	case f.status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// body is a failure as JSON.
func (f *failure) body(anthropic bool) any {
	if anthropic {
		return map[string]any{"type": "error", "error": map[string]any{"type": f.kind(true), "message": f.message}}
	}
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{"message": f.message, "type": f.kind(false), "param": null(f.param),
		"code": null(f.code)}}
}

// failureOf is an error as a failure.
func failureOf(err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &failure{status: 499, message: "the client has gone"}
	}
	return &failure{status: http.StatusInternalServerError, message: err.Error()}
}

// reply writes a value as JSON.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a client that has gone
}

// refuse writes a failure.
func refuse(w http.ResponseWriter, err error, anthropic bool) {
	f := failureOf(err)
	switch f.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	reply(w, f.status, f.body(anthropic))
}
