// The page to chat: it asks the server that it came from, as any other client does.
"use strict";

const at = id => document.getElementById(id);
const settings = ["system", "temperature", "top_p", "max_tokens", "seed", "key"];
let messages = [];
let running = null; // the AbortController of the answer under way

function headers() {
  const out = {"Content-Type": "application/json"};
  if (at("key").value) out.Authorization = "Bearer " + at("key").value;
  return out;
}

// shown adds a message to the page, and gives the elements of its parts.
function shown(role) {
  const article = document.createElement("article");
  const thought = document.createElement("details");
  const summary = document.createElement("summary");
  const thinking = document.createElement("span");
  const text = document.createElement("div");
  const about = document.createElement("div");
  article.className = role;
  text.className = "text";
  about.className = "about";
  summary.textContent = "Thoughts";
  thought.hidden = true;
  thought.append(summary, thinking);
  article.append(thought, text, about);
  at("talk").append(article);
  return {article, thought, thinking, text, about};
}

function scrolled(f) {
  const talk = at("talk");
  const below = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 40;
  f();
  if (below) talk.scrollTop = talk.scrollHeight;
}

// failed is what a response that is no answer says.
async function failed(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return "the server answers with the status " + response.status;
  }
}

// lines gives the data of a stream of events, one after the other.
async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      if (!part.startsWith("data: ")) continue;
      if (part === "data: [DONE]") return;
      yield JSON.parse(part.slice(6));
    }
  }
}

async function answer() {
  const out = shown("assistant");
  const body = {model: at("model").value, stream: true, stream_options: {include_usage: true}, messages: []};
  if (at("system").value) body.messages.push({role: "system", content: at("system").value});
  body.messages.push(...messages);
  for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
    if (at(name).value !== "") body[name] = Number(at(name).value);
  }
  running = new AbortController();
  at("send").hidden = true;
  at("stop").hidden = false;
  const began = performance.now();
  let said = "", why = "";
  try {
    const response = await fetch("v1/chat/completions", {method: "POST", headers: headers(), body: JSON.stringify(body),
      signal: running.signal});
    if (!response.ok) throw new Error(await failed(response));
    for await (const event of lines(response)) {
      if (event.error) throw new Error(event.error.message);
      scrolled(() => {
        for (const choice of event.choices) {
          if (choice.delta.reasoning_content) {
            out.thought.hidden = false;
            out.thinking.textContent += choice.delta.reasoning_content;
          }
          if (choice.delta.content) out.text.textContent = said += choice.delta.content;
          if (choice.finish_reason === "length") why = ", cut at the most tokens";
        }
        if (event.usage) {
          const n = event.usage.completion_tokens, seconds = (performance.now() - began) / 1000;
          out.about.textContent = `${n} tokens, ${(n / seconds).toFixed(1)} a second${why}`;
        }
      });
    }
  } catch (e) {
    if (e.name === "AbortError") {
      out.about.textContent = "stopped";
    } else {
      out.article.classList.add("wrong");
      out.about.textContent = e.message;
    }
  }
  running = null;
  at("send").hidden = false;
  at("stop").hidden = true;
  if (said) messages.push({role: "assistant", content: said});
  else messages.pop(); // what was not answered is not part of the conversation
}

function say(event) {
  event.preventDefault();
  const text = at("text").value.trim();
  if (!text || running) return;
  at("text").value = "";
  messages.push({role: "user", content: text});
  shown("user").text.textContent = text;
  at("talk").scrollTop = at("talk").scrollHeight;
  answer();
}

async function models() {
  const response = await fetch("v1/models", {headers: headers()});
  at("model").replaceChildren();
  if (!response.ok) return;
  for (const m of (await response.json()).data) at("model").append(new Option(m.id));
}

at("say").addEventListener("submit", say);
at("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) say(event);
});
at("stop").addEventListener("click", () => running && running.abort());
at("new").addEventListener("click", () => {
  if (running) running.abort();
  messages = [];
  at("talk").replaceChildren();
  at("text").focus();
});
at("open").addEventListener("click", () => {
  at("settings").hidden = !at("settings").hidden;
  at("open").setAttribute("aria-expanded", String(!at("settings").hidden));
});
at("settings").addEventListener("submit", event => event.preventDefault());
for (const name of settings) {
  const kept = name === "key" ? null : localStorage.getItem("mlxlua." + name);
  if (kept !== null) at(name).value = kept;
  at(name).addEventListener("change", () => {
    if (name === "key") models();
    else localStorage.setItem("mlxlua." + name, at(name).value);
  });
}
models();
