"""Writes golden.json: what transformers (5.24.0, jinja2 3.1.6) makes of templates and conversations.

    python3 testdata/golden.py           (in text/template)

The environment is the one that transformers renders chat templates in; only the clock stands still.
"""

import copy
import datetime
import glob
import json
import os

import jinja2
from transformers.utils import chat_template_utils as utils

HERE = os.path.dirname(os.path.abspath(__file__))


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 3, 7, 9, 5, 8, 12345)


utils.datetime = Clock


def call(name, id="abcdefghi", **arguments):
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


TOOLS = [
    {"type": "function", "function": {
        "name": "weather", "description": "Tells the weather of a place", "return": {"type": "string"},
        "parameters": {"type": "object", "required": ["place"], "properties": {
            "place": {"type": "string", "description": "Where? <b>\"Köln\"</b> & 東京"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "array", "items": {"type": "integer"}, "nullable": True},
            "more": {"type": "array", "items": {"type": "object", "properties": {"deep": {"type": "array"}, "x": {"type": "boolean"}}}},
            "any": {"oneOf": [{"type": "number", "default": 1.5}, {"type": ["string", "null"]}, {"type": ["integer"]}]}}}}},
    {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}},
]
S = {"role": "system", "content": "  You know it all.\n"}
U = {"role": "user", "content": "Hi  there! 'quotes' \"too\" <tag> 🙂\n"}
A = {"role": "assistant", "content": " Hello, you.\n\nWhat is it? "}
T = {"role": "assistant", "content": "<think>\nhm,\nwell\n</think>\n\nIt is 4."}
C = {"role": "assistant", "content": None, "tool_calls": [call("weather", place="Köln", days=[1, 2.50, -3e20], ok=True, no=None)]}
C2 = {"role": "assistant", "content": "", "thinking": "two, then", "reasoning_content": "two, then",
      "tool_calls": [call("now"), call("weather", "123456789", place={"a": "\u2028\x7f\x01"})]}
R = {"role": "tool", "content": "22 °C", "tool_call_id": "abcdefghi", "name": "weather"}
R2 = {"role": "tool", "content": {"content": [1, {"k": "v"}], "n": 1e16}}
P = {"role": "user", "content": [{"type": "image", "url": "x"}, {"type": "text", "text": " what is this? "}]}
V = dict(bos_token="<s>", eos_token="</s>")

CONVERSATIONS = {
    "one": dict(messages=[U], add_generation_prompt=True, **V),
    "system": dict(messages=[S, U, A, U], add_generation_prompt=True, **V),
    "answered": dict(messages=[S, U, A], add_generation_prompt=False, **V),
    "twice": dict(messages=[U, U], **V),
    "thinking": dict(messages=[U, T, U, T], add_generation_prompt=False, enable_thinking=False, **V),
    "tools": dict(messages=[S, U, C, R, A, U], tools=TOOLS, add_generation_prompt=True, **V),
    "calls": dict(messages=[U, C2, R, R, T], tools=TOOLS, early=False, day="1 May", **V),
    "results": dict(messages=[U, C, R2], tools=TOOLS[:1], add_generation_prompt=True, effort="high", **V),
    "parts": dict(messages=[{"role": "system", "content": [{"type": "text", "text": "Look."}]}, P, A], add_generation_prompt=True, **V),
    "late system": dict(messages=[U, A, S, {"role": "skip", "content": "s"}, U, A, {"role": "stop", "content": ""}, A],
                        documents=[{"title": "A", "text": "x\ny", "Z": 1}, {"text": "b", "a": None}], name="", **V),
    "empty": dict(messages=[], tools=TOOLS, parts=[{"name": "a", "parts": [{"name": "b", "parts": []}, {"name": "c"}]}, {"name": "d"}], **V),
    "bare": dict(messages=[S, A], add_generation_prompt=True, enable_thinking=False, my_tools=TOOLS[1:]),
}

DATA = dict(
    s="Hello, Wörld! it's", e="", n=7, f=2.5, big=1e22, t=True, none=None, xs=[3, 1, 2, 1], words=["b", "A", "c", "B"],
    d={"b": 2, "a": [1, "x"], "C": None, "items": "own"}, rows=[{"k": "x", "v": 1, "in": {"z": 5}}, {"k": "y", "v": 2}, {"k": "x", "v": 3}],
    html="<a href='x'>\"&\"</a>", lines="one\n  two\n\nthree\r\nfour", digits=" 042 ", nested=[[1, 2], [3, [4]]], uni="ǅ ß İ Σας ﬁ",
)

EXPRESSIONS = open(os.path.join(HERE, "expressions.txt"), encoding="utf-8").read().split("\n")
SNIPPETS = open(os.path.join(HERE, "snippets.txt"), encoding="utf-8").read().split("\n====\n")


def outcome(source, variables):
    """The text, or null where it raises an error, and the message if the template raised it itself."""
    try:
        # some filters change what they are given
        return utils._cached_compile_jinja_template(source).render(**copy.deepcopy(variables)), None
    except jinja2.exceptions.TemplateError as e:
        return None, str(e.message) if type(e) is jinja2.exceptions.TemplateError else ""
    except Exception:
        return None, ""


def main():
    lines, count = [], 0
    for path in sorted(glob.glob(os.path.join(HERE, "chat", "*.jinja"))):
        with open(path, encoding="utf-8") as f:
            source = f.read()
        for name, variables in CONVERSATIONS.items():
            text, message = outcome(source, variables)
            count += text is not None
            lines.append(["chat/" + os.path.basename(path), name, text, message])
    for source in EXPRESSIONS:
        if source:
            lines.append(["{{ " + source + " }}", "data", *outcome("{{ " + source + " }}", DATA)])
    for source in SNIPPETS:
        lines.append([source, "data", *outcome(source, DATA)])
    with open(os.path.join(HERE, "golden.json"), "w", encoding="utf-8") as f:
        dump = lambda x: json.dumps(x, ensure_ascii=False)
        f.write('{"vars": {\n' + ",\n".join(f"{dump(k)}: {dump(v)}" for k, v in {**CONVERSATIONS, "data": DATA}.items()))
        f.write('},\n"cases": [\n' + ",\n".join(map(dump, lines)) + "\n]}\n")
    print(count, "conversations,", len(lines), "cases")


main()
