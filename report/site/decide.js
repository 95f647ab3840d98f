"use strict";
// Has a passkey sign an approval (docs/passkeys.md), or makes a passkey. Nothing is sent anywhere: what comes of it is text to
// paste. Everything that is shown is set as text.
(() => {
  const namespace = "countersign-decision@v2";
  const keyType = "sk-ecdsa-sha2-nistp256@openssh.com";
  const host = location.hostname;
  const $ = (id) => document.getElementById(id);
  const utf8 = (text) => new TextEncoder().encode(text);
  const say = (text) => { $("said").textContent = text; };

  // SSH's encoding (RFC 4251, section 5).
  const join = (...parts) => {
    const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
    parts.reduce((at, p) => (out.set(p, at), at + p.length), 0);
    return out;
  };
  const uint32 = (n) => new Uint8Array([n >>> 24, n >>> 16, n >>> 8, n]);
  const string = (data) => {
    const bytes = typeof data === "string" ? utf8(data) : new Uint8Array(data);
    return join(uint32(bytes.length), bytes);
  };
  const base64 = (bytes) => btoa(String.fromCharCode(...bytes));
  const base64url = (bytes) => base64(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  // canonical is canonical JSON (RFC 8785) of what has no numbers but whole ones.
  const canonical = (v) => {
    if (Array.isArray(v)) return "[" + v.map(canonical).join(",") + "]";
    if (v === null || typeof v !== "object") return JSON.stringify(v);
    return "{" + Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + canonical(v[k])).join(",") + "}";
  };

  // numbers are r and s of a signature in DER, without the zeros before them.
  const numbers = (der) => {
    const at = (i) => {
      let n = der.subarray(i + 2, i + 2 + der[i + 1]);
      while (n.length > 0 && n[0] === 0) n = n.subarray(1);
      return n;
    };
    return [at(2), at(2 + 2 + der[3])];
  };
  const mpint = (n) => string(n[0] & 0x80 ? join(new Uint8Array([0]), n) : n);

  // point is what a listed key of this host is on its curve, null for any other.
  const point = (blob) => {
    const fields = [];
    for (let at = 0; at + 4 <= blob.length;) {
      const n = new DataView(blob.buffer, blob.byteOffset + at).getUint32(0);
      fields.push(blob.subarray(at + 4, at + 4 + n));
      at += 4 + n;
    }
    return fields.length === 4 && new TextDecoder().decode(fields[3]) === host ? fields[2] : null;
  };

  // signer is the listed key that made a signature.
  const signer = async (keys, signed, [r, s]) => {
    const raw = new Uint8Array(64);
    raw.set(r, 32 - r.length);
    raw.set(s, 64 - s.length);
    const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
    for (const key of keys) {
      const blob = bytesOf(key), at = point(blob);
      if (at && await crypto.subtle.verify(algorithm, await crypto.subtle.importKey("raw", at, algorithm, false, ["verify"]), raw, signed)) return blob;
    }
    throw new Error("The list of keys has no such passkey. Make one below, and add its line.");
  };

  // approve returns the comment that approves some fingerprints.
  const approve = async (change, keys, fingerprints) => {
    const statement = {
      ...change.statement, fingerprints: [...fingerprints].sort(), decided_at: new Date().toISOString().replace(/\.[0-9]+Z$/, "Z"),
    };
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-512", utf8(canonical(statement) + "\n")));
    const asked = join(utf8("SSHSIG"), string(namespace), string(""), string("sha512"), string(sum));
    const { response } = await navigator.credentials.get({ publicKey: { challenge: asked, rpId: host, userVerification: "required" } });
    const told = new Uint8Array(response.authenticatorData), words = new Uint8Array(response.clientDataJSON);
    const begin = `{"type":"webauthn.get","challenge":"${base64url(asked)}","origin":"${location.origin}"`, text = new TextDecoder().decode(words);
    const plain = text.startsWith(begin) && /^(,"crossOrigin":false(,.*)?)?}$/s.test(text.slice(begin.length));
    if (told.length !== 37 || !plain) throw new Error("This browser or passkey signs in a form that does not count. Try another one.");
    const pair = numbers(new Uint8Array(response.signature));
    const blob = await signer(keys, join(told, new Uint8Array(await crypto.subtle.digest("SHA-256", words))), pair);
    const made = join(string("webauthn-" + keyType), string(join(...pair.map(mpint))), told.subarray(32), string(location.origin), string(words), string(""));
    const envelope = join(utf8("SSHSIG"), uint32(1), string(blob), string(namespace), string(""), string("sha512"), string(made));
    const signed = base64url(utf8(canonical({ signature: base64(envelope), statement })));
    if (signed.length > 16384) throw new Error("So many people proposed this that no comment can name them. Use “countersign sign”.");
    return ["/approve", ...statement.fingerprints, "sig:" + signed].join(" ");
  };

  // make has a passkey made, and returns the line of the list for somebody.
  const make = async (who, site) => {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(who)) throw new Error("That is no login.");
    const { response } = await navigator.credentials.create({
      publicKey: {
        challenge: crypto.getRandomValues(new Uint8Array(32)), rp: { id: host, name: site }, pubKeyCredParams: [{ type: "public-key", alg: -7 }],
        user: { id: crypto.getRandomValues(new Uint8Array(16)), name: who, displayName: who },
        authenticatorSelection: { residentKey: "required", userVerification: "required" }, attestation: "none",
      },
    });
    const spki = new Uint8Array(response.getPublicKey() || []), at = spki.subarray(spki.length - 65);
    if (response.getPublicKeyAlgorithm() !== -7 || at[0] !== 4) throw new Error("This passkey is not of ES256, and none of another kind counts.");
    return `${who} namespaces="${namespace}" ${keyType} ` + base64(join(string(keyType), string("nistp256"), string(at), string(host)));
  };

  const does = (button, act) => $(button).addEventListener("click", async () => {
    $(button).disabled = true;
    say("");
    try {
      await act();
    } catch (e) {
      say(e.name === "NotAllowedError" ? "The passkey was not used." : e.message);
    }
    $(button).disabled = false;
  });
  const hand = async (id, text, words) => {
    $(id).value = text;
    $(id).closest("div").hidden = false;
    await navigator.clipboard.writeText(text).then(() => say(words + " It is copied."), () => say(words));
  };
  const fetched = async (name) => {
    const answer = await fetch(name + ".json", { cache: "no-store" });
    if (!answer.ok) throw new Error("Nothing waits for an approval there, or this page is older than the ledger.");
    return answer.json();
  };

  const show = async () => {
    if (window.top !== window.self) throw new Error("This page does nothing inside another one.");
    if (!window.PublicKeyCredential) throw new Error("This browser has no passkeys.");
    const { origin, site, keys } = await fetched("keys");
    if (origin !== location.origin) throw new Error("The Policy takes passkeys that " + origin + " asks, and this is " + location.origin + ".");
    $("make").hidden = false;
    does("create", async () => hand("line", await make($("who").value.trim(), site), "Add this line to the list of keys, in a pull request."));
    const id = location.hash.slice(1);
    if (id === "") return;
    if (!/^tx_[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)) throw new Error("That is no transaction.");
    const change = await fetched(id);
    $("bytes").textContent = change.patch;
    const address = new URL("../tx/" + id + ".html", location.href), plain = (at) => at.pathname.replace(/\.html$/, "");
    $("page").addEventListener("load", () => {
      const shown = $("page").contentDocument;
      const other = !shown || plain(shown.location) !== plain(address); // a link was followed
      $("approve").hidden = other;
      say(other ? "That is another page than what you would approve. Load this one again." : "");
      if (!other) $("page").style.height = shown.documentElement.scrollHeight + 32 + "px";
    });
    $("page").src = address.href;
    $("pull").href = change.pull;
    for (const fingerprint of change.statement.fingerprints) {
      const what = { secret: "what looks like a secret", protected: "the change of protected paths" }[fingerprint.split(":")[0]] || "the change";
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox";
      box.value = fingerprint;
      box.checked = !fingerprint.startsWith("secret:");
      label.append(box, " " + what);
      $("asked").append(label);
    }
    $("approve").hidden = false;
    does("sign", async () => {
      const chosen = [...document.querySelectorAll("#asked input:checked")].map((box) => box.value);
      if (chosen.length === 0) throw new Error("Nothing is chosen.");
      await hand("comment", await approve(change, keys, chosen), "Post this as a comment, all of it and nothing else.");
      $("comment").focus();
    });
  };
  show().catch((e) => say(e.message));
})();
