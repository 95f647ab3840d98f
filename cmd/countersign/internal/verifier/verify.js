// The page that checks a ledger. The checking is done by Go (cmd/verify) in a worker; this script
// hands it the bundle and shows what it says. Nothing is called sound unless the worker's result
// says so in every field. All text goes in through textContent.
"use strict";

(() => {
	const at = (id) => document.getElementById(id);
	const lost = 20; // seconds without a word from the worker, after which the page says so
	let run = null; // the check at hand: what it was given, its worker, what it last said
	let chosen = null; // { name, read }: the ledger that was chosen

	// plain makes what does not show in a text visible, and ends a text that is too long.
	const plain = (text, longest = 4000) => {
		const whole = String(text);
		const shown = whole.slice(0, longest).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
		return whole.length > longest ? shown + "…" : shown;
	};
	const element = (name, text, className) => {
		const e = document.createElement(name);
		if (text !== undefined) e.textContent = text;
		if (className) e.className = className;
		return e;
	};
	const counted = (n, one) => n + " " + one + (n === 1 ? "" : "s");
	const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
	const sha256 = async (bytes) => (globalThis.crypto && crypto.subtle ? hex(await crypto.subtle.digest("SHA-256", bytes)) : "");
	const bytesOf = (id) => Uint8Array.from(atob(at(id).textContent.trim()), (c) => c.charCodeAt(0));
	const address = globalThis.trustedTypes ? trustedTypes.createPolicy("verifier", { createScriptURL: (url) => url }) : { createScriptURL: (url) => url };

	// The program, unpacked and compiled once. One that is not what the page names is not run.
	let unpacked = null;
	const program = () => (unpacked ??= (async () => {
		const stream = new Blob([bytesOf("wasm")]).stream().pipeThrough(new DecompressionStream("gzip"));
		const wasm = await new Response(stream).arrayBuffer();
		const sum = await sha256(wasm);
		const named = at("sum").textContent;
		at("computed").textContent = sum === "" ? "Your browser computes no hashes on a page that came over http. Save the page and open the file." :
			sum === named ? "Computed just now from the bytes that this page runs." : "The bytes in this page have another hash: " + sum;
		if (sum !== "" && sum !== named) throw new Error("the program in this page is damaged");
		return WebAssembly.compile(wasm);
	})());

	// boot is the worker's beginning: it runs the program that the first message brings.
	const boot = () => {
		let said = "";
		const decoder = new TextDecoder();
		globalThis.fs.writeSync = (_, bytes) => {
			said = (said + decoder.decode(bytes)).slice(0, 2000);
			return bytes.length;
		};
		onmessage = async (event) => {
			onmessage = null;
			try {
				const go = new Go();
				let code = 0;
				go.exit = (c) => { code = c; };
				await go.run(await WebAssembly.instantiate(event.data, go.importObject));
				postMessage({ kind: "end", said: said || "exit code " + code });
			} catch (e) {
				postMessage({ kind: "end", said: said || String(e) });
			}
		};
	};

	const say = (text) => { at("said").textContent = text; };
	const inputs = (busy) => {
		at("work").hidden = !busy;
		at("step").textContent = "";
		at("bar").removeAttribute("value");
		for (const b of document.querySelectorAll("#cheats button")) b.disabled = busy;
		at("again").disabled = busy || !chosen;
	};
	const clear = () => {
		for (const id of ["verdict", "details", "cheated"]) at(id).replaceChildren();
		at("cheat").hidden = true;
	};

	// end stops the worker, if there is one.
	const end = () => {
		if (!run) return;
		clearInterval(run.watch);
		run.worker?.terminate();
		run = null;
		inputs(false);
	};
	const reset = () => { end(); clear(); say(""); };
	const fail = (text) => {
		reset();
		at("verdict").append(element("p", "No verdict", "big bad"), element("p", plain(text)));
	};

	const start = async () => {
		reset();
		const tip = at("tip").value.trim().toLowerCase();
		const signers = at("signers").value.trim() === "" ? "" : at("signers").value;
		if (tip !== "" && !/^[0-9a-f]{40}$/.test(tip)) {
			fail("A commit has 40 digits, 0 to 9 and a to f. Nothing was checked.");
			at("tip").focus();
			return;
		}
		const mine = run = { name: chosen.name, tip, signers, last: Date.now(), what: "", waits: true };
		inputs(true);
		say("Reading " + plain(mine.name, 100));
		try {
			const bundle = await chosen.read();
			mine.sum = await sha256(bundle);
			const compiled = await program();
			if (run !== mine) return;
			const source = new Blob([bytesOf("exec"), "\n(" + boot.toString() + ")();\n"], { type: "text/javascript" });
			const url = URL.createObjectURL(source);
			mine.worker = new Worker(address.createScriptURL(url));
			mine.worker.onmessage = (event) => { if (run === mine) hear(mine, event.data, bundle); };
			mine.worker.onerror = (event) => { if (run === mine) fail("The checker stopped: " + (event.message || "it could not be started")); };
			mine.worker.onmessageerror = () => { if (run === mine) fail("The checker's answer cannot be read."); };
			mine.last = Date.now();
			mine.watch = setInterval(() => {
				if (mine.waits && Date.now() - mine.last > lost * 1000) {
					say("The checker has said nothing for " + lost + " seconds. It may still be at work; Stop ends it. There is no verdict.");
				}
			}, 1000);
			mine.worker.postMessage(compiled);
		} catch (e) {
			if (run === mine) fail(e.message || String(e));
		}
	};

	// hear takes one message of the worker.
	const hear = (mine, m, bundle) => {
		mine.last = Date.now();
		switch (m && m.kind) {
			case "ready":
				if (mine.asked) return;
				mine.asked = true;
				offer(mine, Array.isArray(m.ways) ? m.ways : []);
				say("Checking");
				mine.worker.postMessage({ kind: "audit", bundle, signers: mine.signers, tip: mine.tip }, [bundle]);
				return;
			case "progress":
				if (mine.waits) progress(mine, m);
				return;
			case "result":
				if (mine.waits) over(mine, () => (mine.way ? cheated(m) : verdict(mine, m.result)));
				return;
			case "error":
				if (!mine.way) fail(String(m.error).replace(/^./, (c) => c.toUpperCase()) + ".");
				else over(mine, () => at("cheated").append(element("p", plain(m.error), "waits")));
				return;
			default:
				fail("The checker ended without a verdict: " + (m && m.kind === "end" ? m.said : "it said something unknown"));
		}
	};

	// over ends what the worker was asked for, and shows the answer.
	const over = (mine, show) => {
		mine.waits = false;
		inputs(false);
		say("");
		show();
		at(mine.way ? "cheated" : "verdict").scrollIntoView({ block: "nearest" });
	};

	// steps are what a check goes through, in the worker's words, and how much of its time each takes, in hundredths.
	const steps = { "objects read": 10, "objects named": 15, "commits": 15, "transactions": 60 };

	const progress = (mine, m) => {
		const what = plain(m.what, 60), names = Object.keys(steps), n = names.indexOf(what);
		const known = Number.isFinite(m.done) && Number.isFinite(m.total) && m.total > 0;
		mine.began ??= Date.now();
		let text = what + (known ? ": " + m.done.toLocaleString("en") + " of " + m.total.toLocaleString("en") : "");
		if (known && n >= 0) {
			const done = names.slice(0, n).reduce((sum, name) => sum + steps[name], 0) + steps[what] * Math.min(1, m.done / m.total);
			const passed = (Date.now() - mine.began) / 1000, left = Math.ceil(passed / done * (100 - done));
			at("bar").value = done;
			text = "Step " + (n + 1) + " of " + names.length + ", " + text + (passed > 2 && done > 2 ? ". About " + (left > 99 ? Math.ceil(left / 60) + " minutes" : left + " s") + " left" : "");
		}
		at("step").textContent = text;
		if (mine.what !== what) say("Checking: " + what); // a screen reader hears each step once
		mine.what = what;
	};

	// paged reports whether a result says of the pages in the ledger whether they differ from the record.
	const paged = (p) => p !== null && typeof p === "object" && Array.isArray(p.findings) && Number.isInteger(p.not_checked) && p.ok === (p.findings.length === 0);

	// sound reports whether a result says in every field that nothing is wrong.
	const sound = (r) => r !== null && typeof r === "object" && r.ok === true && r.complete === true && r.count === 0 &&
		Array.isArray(r.findings) && r.findings.length === 0 && Number.isInteger(r.commits) && r.commits > 0 &&
		Number.isInteger(r.transactions) && Number.isInteger(r.signed) && /^[0-9a-f]{40}$/.test(r.tip) && paged(r.pages);

	// understood reports whether a result is one that says what is wrong.
	const understood = (r) => r !== null && typeof r === "object" && r.ok === false && Array.isArray(r.findings) && r.findings.length > 0;

	const verdict = (mine, r) => {
		if (!sound(r) && !understood(r)) return fail("The checker's answer is not one that this page understands.");
		let [look, word, why] = sound(r) ? held(mine, r) : ["bad", ...broken(r)];
		const differs = paged(r.pages) && !r.pages.ok;
		if (differs && sound(r)) [look, word, why] = ["waits", word + ", but pages in it differ from the record", why + " What such a page says and the record does not, nobody proposed, approved or did."];
		at("verdict").append(element("p", word, "big " + look), element("p", why));
		at("verdict").after(at("known"));
		if (look === "bad") at("details").append(element("h2", "What was found"), findings(r));
		if (differs) at("details").append(element("h2", "Pages that differ from the record"), findings(r.pages));
		at("details").append(element("h2", "What was checked"), checked(mine, r));
		if (Array.isArray(r.notes) && r.notes.length > 0) {
			const list = element("ul");
			for (const n of r.notes) list.append(element("li", plain([n.commit, n.path, n.message].filter(Boolean).join(" "))));
			at("details").append(element("h3", "Notes"), list);
		}
		at("cheat").hidden = look === "bad" || at("cheats").childElementCount === 0;
	};

	// held says of a ledger in which nothing is wrong how much that shows.
	const held = (mine, { signed_decisions: s }) => {
		const rules = "Every rule of “countersign audit” holds" + (s && s.unknown ? " that a bundle can tell of: whether the Policy’s commits list the keys of " +
			counted(s.unknown, "signed decision") + ", the command tells in a clone. " : ". ");
		const keys = mine.signers === "" ? "" : " Each commit is signed by a key that you allowed.";
		if (mine.tip !== "") return ["good", "Sound, and it holds the commit you know", rules + "Nothing from before that commit was changed." + keys];
		if (keys !== "") return ["good", "Sound, and signed by keys that you allowed", rules + keys.trim()];
		return ["waits", "Agrees with itself", rules + "Whether it is the ledger that was kept is not shown: whoever can write to it can make all of it anew. Give a commit that you know."];
	};

	const unheld = "It was rewritten, or the number is of something else.";
	const broken = (r) => {
		if (r.complete === true && r.count === 1 && r.findings[0].rule_id === "L14") return ["This ledger does not hold that commit", unheld];
		return [r.complete === true ? "Not sound" : "Not all here, and so not verified", counted(r.count, "finding") + ". Nothing that this ledger says is to be relied on."];
	};

	const checked = (mine, r) => {
		const list = element("dl");
		const row = (name, value) => {
			const d = element("div");
			d.append(element("dt", name), element("dd", plain(value, 300)));
			list.append(d);
		};
		const s = r.signed_decisions || {};
		row("File", mine.name);
		if (mine.sum) row("Its SHA-256", mine.sum);
		row("Tip of the ledger", r.tip || "unknown");
		row("Known tip", mine.tip || "none was given");
		row("Commits", r.commits + (r.from ? " after " + r.from + ", which was trusted" : ", from the first"));
		row("Transactions", r.transactions);
		if (paged(r.pages) && r.pages.not_checked > 0) row("Pages not checked", counted(r.pages.not_checked, "page") + " written by a newer countersign, which prove nothing here");
		row("Signatures", mine.signers === "" ? r.signed + " of " + counted(r.commits, "commit") + " signed, not verified: no allowed signers were given" :
			sound(r) ? "all good, by keys that you allowed" : r.signed + " of " + counted(r.commits, "commit") + " signed; see the findings");
		row("Signed decisions", !s.count ? "none" : s.count + " (" + s.registered + " by a key that the forge had for the account, " + s.listed +
			" by one that the Policy’s commit lists, " + s.unknown + " unknown: that commit is not in a bundle of the ledger)");
		return list;
	};

	// sentence says what is wrong: most messages go on from what they are about.
	const sentence = ({ rule_id, commit, path = "", message = "" }) => {
		if (rule_id === "L14") return "This ledger does not hold the commit that you know. " + unheld;
		const about = String(path).replace(/^transactions\/.*\/tx_[0-9A-Z]{26}\//, "").replace(/([0-9a-f]{12})[0-9a-f]{52}/g, "$1…") || (commit && rule_id !== "HISTORY" ? "The commit" : "");
		const goes = /^(is|was|has|did|does|adds|lacks|holds|accepts|cannot|supersedes) /.test(message);
		return (about && about + (goes ? " " : ": ")) + message + ".";
	};

	const findings = (r) => {
		const box = element("div"), lists = new Map(), lines = new Map();
		if (r.count > r.findings.length) box.append(element("p", "These are the first " + r.findings.length + " of " + counted(r.count, "finding") + "."));
		for (const f of r.findings) {
			const name = /tx_[0-9A-Z]{26}/.exec(f.path)?.[0] ?? "The ledger itself", same = JSON.stringify([f.rule_id, f.path, f.message]);
			if (!lists.has(name)) {
				lists.set(name, element("ul"));
				box.append(element("h3", name), lists.get(name));
			}
			if (!lines.has(same)) { // one line for all commits of which the same is wrong
				const line = Object.assign(element("li", plain(sentence(f))), { title: plain(f.path || "") });
				lines.set(same, element("small", plain(f.rule_id)));
				line.append(lines.get(same));
				lists.get(name).append(line);
			}
			if (f.commit) lines.get(same).append(" · " + plain(String(f.commit).slice(0, 12)));
		}
		return box;
	};

	// offer shows the ways to cheat that the worker knows.
	const offer = (mine, ways) => {
		at("cheats").replaceChildren();
		for (const { how, title } of ways) {
			const b = Object.assign(element("button", plain(title, 100)), { type: "button" });
			b.addEventListener("click", () => {
				if (run !== mine || mine.waits) return;
				Object.assign(mine, { way: how, waits: true, last: Date.now(), what: "" });
				at("cheated").replaceChildren();
				inputs(true);
				say("Changing the ledger, and checking it");
				mine.worker.postMessage({ kind: "cheat", how });
			});
			at("cheats").append(b, " ");
		}
	};

	const cheated = (m) => {
		const caught = understood(m.result);
		const rules = caught ? [...new Set(m.result.findings.map((f) => plain(f.rule_id, 20)))].join(", ") : "";
		at("cheated").append(element("p", plain(m.changed || ""), "lead"), element("p", caught ? "Caught by " + rules : "Not caught", "big " + (caught ? "good" : "bad")));
		if (rules === "L14") at("cheated").append(element("p", "Only because the tip was known: what is left agrees with itself."));
		if (caught) at("cheated").append(findings(m.result));
	};

	const choose = (name, read) => { chosen = { name, read }; start(); };
	const take = (file) => { if (file) choose(file.name, () => file.arrayBuffer()); };
	at("file").addEventListener("click", () => { at("file").value = ""; }); // the same file may be another now
	at("file").addEventListener("change", () => take(at("file").files[0]));
	at("again").addEventListener("click", start);
	at("beside").addEventListener("click", () => choose("ledger.bundle", async () => {
		const refused = new Error(location.protocol === "file:" ? "A page that was opened from a file may not read the file beside it. Choose ledger.bundle with the button." :
			"There is no ledger.bundle beside this page. Choose a file.");
		const answer = await fetch("ledger.bundle", { credentials: "same-origin", redirect: "error" }).catch(() => { throw refused; });
		if (!answer.ok) throw refused;
		return answer.arrayBuffer();
	}));
	at("stop").addEventListener("click", () => {
		fail("You stopped the check.");
		at("again").focus();
	});
	for (const id of ["tip", "signers"]) { // a verdict was about what stood there before
		at(id).addEventListener("input", reset);
	}
	at("tip").addEventListener("keydown", (event) => { if (event.key === "Enter" && chosen) start(); });
	addEventListener("dragover", (event) => event.preventDefault());
	addEventListener("drop", (event) => {
		event.preventDefault();
		take(event.dataTransfer.files[0]);
	});
	inputs(false);
	at("form").hidden = false;
	program().catch((e) => fail(e.message));
})();
