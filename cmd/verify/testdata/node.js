// Runs the verifier in node as a page does in a Web Worker: argv are wasm_exec.js, the
// wasm, and then for each question a bundle, a file of allowed signers ("" for none) and a
// known tip. It prints what the worker answers, one line of JSON a question, and at last
// how much memory it took.
"use strict";
const fs = require("fs");
const [exec, wasm, ...rest] = process.argv.slice(2);
require(exec);
const questions = [];
for (let i = 0; i < rest.length; i += 3) questions.push(rest.slice(i, i + 3));
const ask = () => {
	const q = questions.shift();
	if (!q) {
		const peak = /VmHWM:\s*(\d+)/.exec(fs.existsSync("/proc/self/status") ? fs.readFileSync("/proc/self/status", "utf8") : "");
		console.log(JSON.stringify({ kind: "end", kilobytes: peak ? Number(peak[1]) : 0, milliseconds: Math.round(process.cpuUsage().user / 1000) }));
		process.exit(0);
	}
	const bytes = fs.readFileSync(q[0]);
	const bundle = bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
	globalThis.onmessage({ data: { kind: "audit", bundle, signers: q[1] ? fs.readFileSync(q[1], "utf8") : "", tip: q[2] } });
};
globalThis.postMessage = (m) => {
	if (m.kind === "progress") return;
	if (m.kind !== "ready") console.log(JSON.stringify(m));
	setTimeout(ask, 0);
};
const go = new Go();
WebAssembly.instantiate(fs.readFileSync(wasm), go.importObject).then((r) => go.run(r.instance));
