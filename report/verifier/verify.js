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
		at("stop").hidden = at("bar").hidden = !busy;
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
			fail("A known tip has 40 digits, 0 to 9 and a to f. Nothing was checked.");
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
				if (!mine.way) fail("The ledger could not be checked: " + m.error);
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

	const progress = (mine, m) => {
		const what = plain(m.what, 60);
		const known = Number.isFinite(m.done) && Number.isFinite(m.total) && m.total > 0;
		if (known) Object.assign(at("bar"), { max: m.total, value: m.done });
		else at("bar").removeAttribute("value");
		at("step").textContent = known ? what + ": " + m.done + " of " + m.total : what + (Number.isFinite(m.done) ? ": " + m.done : "");
		if (mine.what !== what) say("Checking: " + what); // a screen reader hears each step once
		mine.what = what;
	};

	// sound reports whether a result says in every field that nothing is wrong.
	const sound = (r) => r !== null && typeof r === "object" && r.ok === true && r.complete === true && r.count === 0 &&
		Array.isArray(r.findings) && r.findings.length === 0 && Number.isInteger(r.commits) && r.commits > 0 &&
		Number.isInteger(r.transactions) && Number.isInteger(r.signed) && /^[0-9a-f]{40}$/.test(r.tip);

	// understood reports whether a result is one that says what is wrong.
	const understood = (r) => r !== null && typeof r === "object" && r.ok === false && Array.isArray(r.findings) && r.findings.length > 0;

	const verdict = (mine, r) => {
		if (!sound(r) && !understood(r)) {
			fail("The checker's answer is not one that this page understands.");
			return;
		}
		const good = sound(r);
		const word = good ? "Sound" : r.complete === true ? "Not sound" : "Not all here, and so not verified";
		at("verdict").append(element("p", word, "big " + (good ? "good" : "bad")));
		if (!good) at("verdict").append(element("p", counted(r.count, "finding") + ". Nothing that this ledger says is to be relied on."));
		else at("verdict").append(element("p", "Every rule of “countersign audit” holds" + untold(r) + ". " + vouched(mine)));
		at("details").append(checked(mine, r));
		if (!good) at("details").append(findings(r));
		if (Array.isArray(r.notes) && r.notes.length > 0) {
			const list = element("ul");
			for (const n of r.notes) list.append(element("li", plain([n.commit, n.path, n.message].filter(Boolean).join(" "))));
			at("details").append(element("h3", "Notes"), list);
		}
		at("cheat").hidden = !good || at("cheats").childElementCount === 0;
	};

	// untold says which rule a bundle cannot tell of.
	const untold = ({signed_decisions: s}) => !(s && s.unknown) ? "" : " that a bundle can tell of: whether the Policy’s commits list the keys of " + counted(s.unknown, "signed decision") + ", the command tells in a clone";

	// vouched says what shows that the ledger is the one that was kept.
	const vouched = (mine) => {
		const parts = [];
		if (mine.tip !== "") parts.push("The ledger holds the commit that you know, and nothing from before it was changed.");
		if (mine.signers !== "") parts.push("Each commit is signed by a key that you allowed.");
		return parts.length > 0 ? parts.join(" ") : "That proves that the ledger agrees with itself, not that it is the one that was kept: " +
			"whoever can write to it can make all of it anew. A known tip or allowed signers would show that.";
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
		row("Signatures", mine.signers === "" ? r.signed + " of " + counted(r.commits, "commit") + " signed, not verified: no allowed signers were given" :
			sound(r) ? "all good, by keys that you allowed" : r.signed + " of " + counted(r.commits, "commit") + " signed; see the findings");
		row("Signed decisions", !s.count ? "none" : s.count + " (" + s.registered + " by a key that the forge had for the account, " + s.listed +
			" by one that the Policy’s commit lists, " + s.unknown + " unknown: that commit is not in a bundle of the ledger)");
		return list;
	};

	const findings = (r) => {
		const box = Object.assign(element("div", undefined, "wide"), { tabIndex: 0, role: "region", ariaLabel: "Findings" });
		const table = element("table");
		const head = element("tr");
		for (const name of ["Rule", "Commit", "Path", "Message"]) head.append(element("th", name));
		table.append(element("caption", counted(r.count, "finding") + (r.count > r.findings.length ? ", of which the first " + r.findings.length : "")), head);
		for (const f of r.findings) {
			const line = element("tr");
			for (const value of [f.rule_id, String(f.commit || "").slice(0, 12), f.path, f.message]) line.append(element("td", plain(value ?? "")));
			table.append(line);
		}
		box.append(table);
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
	addEventListener("dragover", (event) => event.preventDefault());
	addEventListener("drop", (event) => {
		event.preventDefault();
		take(event.dataTransfer.files[0]);
	});
	inputs(false);
	at("form").hidden = false;
	program().catch((e) => fail(e.message));
})();
