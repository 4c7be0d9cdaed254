// Package serve answers HTTP requests by language models, in the forms of OpenAI's API and others that its clients
// know. A Server is an http.Handler, for programs that have one to mount; `mlxlua lm server` is one of them. See
// docs/server.md.
//
// A model is a Lua state of its own on one goroutine (model.go). It goes on with all requests of the model in each
// step: scripts/lm/engine.lua. Handlers read what a request asks for (fields.go, chat.go, completions.go), hand it over
// and write what comes back, at once or piece by piece (events.go).
package serve
