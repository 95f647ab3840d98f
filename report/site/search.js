"use strict";
// Finds transactions in the index beside it (search.go writes that). The index comes as scripts, as a
// page that was opened from a directory may load nothing else. What is shown is set as text.
(() => {
  const shown = 200, perBlock = 250, longest = 64;
  const loaded = new Map(); // promises of files by name
  const arrived = new Map(); // what they had
  window.countersign = (what, name, data) => arrived.set(what + "/" + name, data);

  // load brings a file of the index; one that is not there has nothing.
  const load = (what, name, file) => {
    if (!loaded.has(file)) {
      loaded.set(file, new Promise((done) => {
        const script = document.createElement("script");
        script.onload = script.onerror = () => done(arrived.get(what + "/" + name) || []);
        script.src = "i/" + file + ".js";
        document.head.append(script);
      }));
    }
    return loaded.get(file);
  };

  const lower = (word) => Array.from(word, (c) => Array.from(c.toLowerCase())[0]).join("");

  // terms are the words of a query: is:waiting or state:waiting, #12, 2026-11 and others.
  const terms = (query) => {
    const plain = query.replace(/\b(tx_|patchset:|sha256:)/gi, "").replace(/(^|\s)state:/gi, "$1is:");
    const words = plain.match(/(?<!\S)is:[a-z-]+|#[0-9]+|(?<!\S)[0-9]{4}-[0-9]{2}(-[0-9]{2})?(?!\S)|[\p{L}\p{N}\p{M}]+/giu) || [];
    return [...new Set(words)].map((w) => Array.from(lower(w)).slice(0, longest).join(""));
  };

  const isULID = (term) => /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(term);

  const shard = (term) => {
    const last = term[term.length - 1];
    if (term[0] === "#") return "p" + last;
    if (term.startsWith("is:")) return "is";
    if (/^[0-9]{4}-[0-9]{2}/.test(term)) return "d" + term.slice(0, 7);
    if (isULID(term)) return "x" + last;
    const begin = Array.from(term).slice(0, 2).join("");
    if (/^[0-9a-z]+$/.test(begin)) return "w" + begin;
    let sum = 2166136261;
    for (const byte of new TextEncoder().encode(begin)) sum = Math.imul(sum ^ byte, 16777619) >>> 0;
    return "u" + (sum & 255).toString(16).padStart(2, "0");
  };

  // numbers are the transactions that have a word which begins like this one.
  const numbers = async (term) => {
    const found = new Set();
    for (const [word, list] of await load("terms", shard(term), shard(term))) {
      if (word === term || term[0] !== "#" && word.startsWith(term)) list.forEach((n) => found.add(n));
    }
    return found;
  };

  const link = (href, text) => {
    const a = document.createElement("a");
    a.href = href;
    a.textContent = text;
    return a;
  };

  const row = ([id, day, summary, state, tone, by, decided]) => {
    const tr = document.createElement("tr");
    const span = document.createElement("span");
    span.textContent = state;
    span.className = tone;
    for (const [label, cell] of [["", link("../tx/" + id + ".html", summary || id)], ["", span], ["by", by], ["decided by", decided], ["proposed", day]]) {
      const td = document.createElement("td");
      td.append(cell);
      if (label !== "" && cell !== "") td.dataset.label = label;
      tr.append(td);
    }
    return tr;
  };

  let latest = 0;
  const search = async (query) => {
    const run = ++latest;
    const status = document.getElementById("found"), body = document.getElementById("results");
    const words = terms(query);
    let found = null;
    for (const set of await Promise.all(words.map(numbers))) {
      found = found === null ? set : new Set([...found].filter((n) => set.has(n)));
    }
    const all = [...(found || [])].sort((a, b) => b - a), rows = [];
    for (const n of all.slice(0, shown)) {
      const at = String(Math.floor(n / perBlock)), block = await load("block", at, "t/" + at);
      if (block[n % perBlock]) rows.push(row(block[n % perBlock]));
    }
    if (run !== latest) return;
    body.replaceChildren(...rows);
    body.parentElement.hidden = rows.length === 0;
    status.textContent = words.length === 0 ? "" : all.length === 0 ? "Nothing has these words." :
      (all.length > shown ? "The newest " + shown + " of " + all.length + " transactions." : all.length === 1 ? "1 transaction." : all.length + " transactions.");
  };

  const form = document.getElementById("search"), input = document.getElementById("query");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search(input.value);
  });
  input.value = new URLSearchParams(location.search).get("q") || "";
  if (input.value !== "") search(input.value);
})();
