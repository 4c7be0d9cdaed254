# clients.py URL: the clients of OpenAI and Anthropic understand what the server of TestClients answers.
#   pip install openai anthropic
import json
import sys

import anthropic
import openai

url = sys.argv[1]
ai = openai.OpenAI(base_url=url + "/v1", api_key="sesame", max_retries=0)
other = anthropic.Anthropic(base_url=url, api_key="sesame", max_retries=0)
messages = [{"role": "user", "content": "hello there"}]

assert [m.id for m in ai.models.list()] == ["caller"]
assert ai.models.retrieve("caller").id == "caller"

whole = ai.chat.completions.create(model="caller", messages=messages, max_tokens=12, temperature=0, logprobs=True, top_logprobs=2)
assert whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 12
assert len(whole.choices[0].logprobs.content) == 12 and len(whole.choices[0].logprobs.content[0].top_logprobs) == 2
text, usage = "", None
for chunk in ai.chat.completions.create(model="caller", messages=messages, max_tokens=12, temperature=0, stream=True,
                                        stream_options={"include_usage": True}):
    usage = chunk.usage or usage
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
assert text == whole.choices[0].message.content and usage.completion_tokens == 12
assert usage.prompt_tokens_details.cached_tokens == usage.prompt_tokens - 1

old = ai.completions.create(model="caller", prompt=["hello", "there"], max_tokens=5, n=2, seed=1, logprobs=2, stop=["zzz"])
assert len(old.choices) == 4 and len(old.choices[0].logprobs.tokens) == 5

schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}, "c": {"enum": ["a", "b"]}},
          "required": ["n", "c"], "additionalProperties": False}
form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
out = json.loads(ai.chat.completions.create(model="caller", messages=messages, max_tokens=200, seed=2,
                                            response_format=form).choices[0].message.content)
assert 1 <= out["n"] <= 9 and out["c"] in "ab", out

tools = [{"type": "function", "function": {"name": "paint", "parameters": schema}}]
choice = {"type": "function", "function": {"name": "paint"}}
called = ai.chat.completions.create(model="caller", messages=messages, tools=tools, tool_choice=choice, max_tokens=200, seed=2)
call = called.choices[0].message.tool_calls[0]
assert called.choices[0].finish_reason == "tool_calls" and json.loads(call.function.arguments)["c"] in "ab"
with ai.chat.completions.stream(model="caller", messages=messages, tools=tools, tool_choice=choice, max_tokens=200, seed=2) as s:
    final = s.get_final_completion()
assert json.loads(final.choices[0].message.tool_calls[0].function.arguments) == json.loads(call.function.arguments)
ai.chat.completions.create(model="caller", tools=tools, max_tokens=3, messages=messages + [
    called.choices[0].message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "done"}])


def refused(kind, f, **arguments):
    try:
        f(**arguments)
    except kind as e:
        return e
    raise AssertionError("no error")


e = refused(openai.BadRequestError, ai.chat.completions.create, model="caller", messages=messages, temperature=-1)
assert e.param == "temperature" and "temperature is -1" in e.message, e
refused(openai.NotFoundError, ai.chat.completions.create, model="nothing", messages=messages)
refused(openai.AuthenticationError, openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0).models.list)

m = other.messages.create(model="caller", max_tokens=12, extra_body={"temperature": 0}, system="be brief", messages=messages)
assert m.stop_reason == "max_tokens" and m.usage.output_tokens == 12 and m.content[0].type == "text"
with other.messages.stream(model="caller", max_tokens=12, extra_body={"temperature": 0}, system="be brief", messages=messages) as s:
    assert "".join(s.text_stream) == m.content[0].text
    assert s.get_final_message().stop_reason == "max_tokens"
mine = [{"name": "paint", "description": "paints", "input_schema": schema}]
with other.messages.stream(model="caller", max_tokens=200, messages=messages, tools=mine, tool_choice={"type": "any"}) as s:
    m = s.get_final_message()
assert m.stop_reason == "tool_use" and m.content[0].input["c"] in "ab", m
other.messages.create(model="caller", max_tokens=3, tools=mine, messages=messages + [
    {"role": "assistant", "content": [b.model_dump() for b in m.content]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": m.content[0].id, "content": "done"}]}])
refused(anthropic.BadRequestError, other.messages.create, model="caller", max_tokens=0, messages=messages)
refused(anthropic.NotFoundError, other.messages.create, model="nothing", max_tokens=3, messages=messages)
print("both are content")
