-- mlxlua lm server: models answer over HTTP. Only the program around the scripts can do that: host.serve(options) does
-- until Ctrl-C, and gives nil, or why it could not.
local command = require("lm.command")
local fail = command.fail

local commands = {}

commands.server = {
  about = "Answers requests of OpenAI's and Anthropic's clients over HTTP until Ctrl-C, and shows a page to chat at /.",
  rows = {
    {"model", "text", "a model as other commands take it, or NAME=MODEL; may be repeated", many = true},
    {"tokenizer", "text", "a directory or a .gguf file with another tokenizer, for one model"},
    command.ignore_key,
    {"host", "text", "the address to listen at", default = "127.0.0.1"},
    {"port", "count", "the port; 0: any that is free", default = 8080},
    {"api-key", "text", "a key that clients must have; may be repeated", many = true},
    {"tls-cert", "text", "a file with a certificate: the server speaks HTTPS"},
    {"tls-key", "text", "a file with its key"},
    {"loaded", "count", "models in memory at once; the least recently used one goes", default = 1},
    {"idle", "number", "seconds after which a model that nobody uses goes; 0: never", default = 0},
    {"lazy", "flag", "loads a model when it is first asked for, not at the start"},
    {"rows", "count", "texts that a model goes on with at once", default = 16},
    {"waiting", "count", "further requests that wait; others get the status 429", default = 256},
    {"prefill-step-size", "count", "tokens of a prompt that are read between two steps", default = 512},
    {"context", "count", "tokens of a text at most; 0: as many as model and memory allow", default = 0},
    {"max-tokens", "count", "tokens of an answer whose request does not say it", short = "-m", default = 512},
    {"cache-memory", "number", "GB for what a model remembers of the texts that it goes on with", default = 2},
    {"prompt-cache-memory", "number", "GB for what it remembers of earlier ones", default = 0.5},
    {"kv-bits", "count", "bits in which keys and values are kept"},
    {"kv-group-size", "count", "group size of kv-bits", default = 64},
    {"batch-invariant", "flag", "answers have the same bytes whatever is computed beside them; slower"},
  },
}

function commands.server.run(host, o)
  if not o.model then fail("--model is needed") end
  if not host.serve then fail("this program serves nothing") end
  if (o.tls_cert == nil) ~= (o.tls_key == nil) then fail("--tls-cert and --tls-key need each other") end
  if o.tokenizer and #o.model > 1 then fail("--tokenizer is for one model") end
  local why = host.serve(o)
  if why then fail("%s", why) end
  return 0
end

return commands
