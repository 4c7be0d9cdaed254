package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mlxlua/mlxlua/hub"
)

// Hub says where models come from, and who asks.
type Hub struct {
	Endpoint string // such as https://huggingface.co
	Token    string // "" for none
}

// publicHub is the endpoint where HF_ENDPOINT names no other one.
const publicHub = "https://huggingface.co"

// DefaultHub is the hub that the environment names, as its own tools read it: HF_ENDPOINT, and HF_TOKEN, or its older
// name, or the file HF_TOKEN_PATH, else token in hub.Home. HF_HUB_OFFLINE is an error.
func DefaultHub() (Hub, error) {
	if on("HF_HUB_OFFLINE") {
		return Hub{}, errors.New("[pull] HF_HUB_OFFLINE is set: nothing is downloaded")
	}
	h := Hub{Endpoint: os.Getenv("HF_ENDPOINT")}
	if h.Endpoint == "" {
		h.Endpoint = publicHub
	}
	if on("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		return h, nil
	}
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if h.Token = strings.TrimSpace(os.Getenv(name)); h.Token != "" {
			return h, nil
		}
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if path == "" {
		home, err := hub.Home()
		if err != nil {
			return h, err
		}
		path = filepath.Join(home, "token")
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return h, fmt.Errorf("[pull] the token's file cannot be read: %w", err)
	}
	h.Token = strings.TrimSpace(string(text))
	return h, nil
}

// on reports whether a variable of the environment says yes.
func on(name string) bool {
	switch strings.ToUpper(os.Getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// pace says how long a client waits, and how often it tries.
type pace struct {
	tries   int           // in a row, without a byte that came
	first   time.Duration // before the second try; each further one is twice as long
	longest time.Duration // that the hub may ask for
	stall   time.Duration // without a byte: the connection is given up
}

var defaultPace = pace{tries: 6, first: time.Second, longest: 10 * time.Minute, stall: 30 * time.Second}

// client asks a hub.
type client struct {
	endpoint *url.URL
	token    string
	http     http.Client
	pace     pace
	note     func(text string) // for whoever waits
}

func newClient(h Hub, note func(string)) (*client, error) {
	u, err := url.Parse(strings.TrimRight(h.Endpoint, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("[pull] the hub's endpoint %q is no http or https address", h.Endpoint)
	}
	if strings.ContainsFunc(h.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("[pull] the token has characters that no token has: is its file the right one?")
	}
	c := &client{endpoint: u, token: h.Token, pace: defaultPace, note: note}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// at is the address of a place of the hub, whose parts are escaped.
func (c *client) at(parts ...string) *url.URL {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	u, err := url.Parse(c.endpoint.String() + "/" + strings.Join(parts, "/"))
	if err != nil {
		panic(err) // of an endpoint that was parsed, and of escaped text
	}
	return u
}

// passing is what may be better next time.
type passing struct {
	text  string
	after time.Duration // that the hub asks for, 0 if it asks for none
}

func (e *passing) Error() string { return "[pull] " + e.text }

// errStalled ends a connection on which nothing comes.
var errStalled = errors.New("nothing has come for too long")

// trying calls f until it does not fail in passing. f reports whether something came before it failed: then it has all
// of its tries again.
func (c *client) trying(ctx context.Context, f func() (came bool, err error)) error {
	for n := 1; ; n++ {
		came, err := f()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var p *passing
		if err == nil || !errors.As(err, &p) {
			return err
		}
		if came {
			n = 1
		}
		if n >= c.pace.tries {
			return fmt.Errorf("%w (tried %d times)", err, n)
		}
		wait := c.pace.first << (n - 1)
		if p.after > c.pace.longest {
			return fmt.Errorf("%w, and asks to wait %v: try again then", err, p.after)
		}
		wait = max(wait, p.after)
		c.note(fmt.Sprintf("%s; trying again in %v", strings.TrimPrefix(err.Error(), "[pull] "), wait))
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// get asks for an address, from a byte on. The answer is 200 or 206; its body fails when nothing comes for too long.
func (c *client) get(ctx context.Context, u *url.URL, from int64) (*http.Response, error) {
	const mostRedirects = 10
	ctx, cancel := context.WithCancelCause(ctx)
	idle := time.AfterFunc(c.pace.stall, func() { cancel(errStalled) })
	give := func(err error) (*http.Response, error) {
		idle.Stop()
		cancel(nil)
		return nil, err
	}
	for range mostRedirects {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return give(fmt.Errorf("[pull] %s: %w", u.Host, err))
		}
		req.Header.Set("User-Agent", "mlxlua")
		req.Header.Set("Accept-Encoding", "identity") // what comes is counted, and resumed
		if c.token != "" && sameOrigin(u, c.endpoint) {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		if from > 0 {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return give(broken(ctx, u, err))
		}
		if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent {
			resp.Body = &body{resp.Body, ctx, cancel, idle, c.pace.stall, u}
			return resp, nil
		}
		resp.Body.Close()
		if resp.StatusCode/100 != 3 {
			return give(c.refusal(u, resp))
		}
		to, err := resp.Location()
		if err != nil || to.Scheme != "https" && to.Scheme != u.Scheme {
			return give(fmt.Errorf("[pull] %s redirects to where nothing is fetched from: %s", u.Host, bare(to)))
		}
		u = to
	}
	return give(fmt.Errorf("[pull] %s redirects more than %d times", u.Host, mostRedirects))
}

// sameOrigin reports whether two addresses are of one server.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// bare is an address without what lets somebody fetch it: the query, which may be signed.
func bare(u *url.URL) string {
	if u == nil {
		return "nowhere"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// broken is a connection's error, without the address that net/http puts into it.
func broken(ctx context.Context, u *url.URL, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	return &passing{text: fmt.Sprintf("%s: %v", u.Host, err)}
}

// body is an answer's body that does not wait for ever.
type body struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
	stall  time.Duration
	u      *url.URL
}

// Read reads what has come. An error other than io.EOF may be better next time.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.idle.Reset(b.stall)
	if err != nil && err != io.EOF {
		err = broken(b.ctx, b.u, err)
	}
	return n, err
}

// Close ends the connection if not all was read.
func (b *body) Close() error {
	b.idle.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// errRange is what the hub answers where a file has no such part.
var errRange = errors.New("[pull] the file has no such part")

// refusal is the error that an answer stands for.
func (c *client) refusal(u *url.URL, resp *http.Response) error {
	if !sameOrigin(u, c.endpoint) {
		return c.status(u, resp)
	}
	token := "no token was sent: HF_TOKEN, or the file that the hub's own login writes"
	if c.token != "" {
		token = "the token that was sent has no access"
	}
	switch code := resp.Header.Get("X-Error-Code"); {
	case code == "GatedRepo":
		return fmt.Errorf("[pull] the model is gated: its page on %s asks for an agreement, and %s", u.Host, token)
	case code == "RevisionNotFound":
		return errors.New("[pull] the model has no such revision")
	case code == "EntryNotFound":
		return fmt.Errorf("[pull] the hub lists a file that it does not have: %s", bare(u))
	case code == "RepoNotFound" || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("[pull] %s has no such model, or it is a private one: %s (%s)", u.Host, token, resp.Status)
	case resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("[pull] %s refuses: %s (%s)", u.Host, token, resp.Status)
	}
	return c.status(u, resp)
}

// status is the error of a status that says nothing of who asks.
func (c *client) status(u *url.URL, resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return errRange
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &passing{fmt.Sprintf("%s: %s", u.Host, resp.Status), retryAfter(resp.Header)}
	}
	return fmt.Errorf("[pull] %s: %s", bare(u), resp.Status)
}

// retryAfter is how long an answer asks to wait: by seconds or a date, or by what is left of a limit ("api";r=0;t=55).
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		limit := strings.ReplaceAll(h.Get("RateLimit"), " ", "")
		if _, rest, ok := strings.Cut(limit, ";r=0;t="); ok {
			text, _, _ = strings.Cut(rest, ";")
		}
	}
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(time.Until(date), 0)
	}
	return 0
}
