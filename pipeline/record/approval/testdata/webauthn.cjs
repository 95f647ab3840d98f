// Has @simplewebauthn/server, which npm put below the directory that is named, verify what signatures of passkeys are made of
// (OpenSSH's PROTOCOL.sshsig and PROTOCOL.u2f): on stdin an object a line, on stdout what it says of each.
"use strict";
const { createHash } = require("node:crypto");
const { createRequire } = require("node:module");
const { verifyAuthenticationResponse } = createRequire(process.argv[2] + "/")("@simplewebauthn/server");
const hash = (algorithm, data) => createHash(algorithm).update(data).digest();
const string = (data) => Buffer.concat([Buffer.from([0, 0, data.length >> 8, data.length & 255]), Buffer.from(data)]);

// fields takes SSH's strings apart, and numbers of so many bytes between them.
const fields = (data, ...sizes) => {
  let at = 0;
  return sizes.map((size) => {
    const n = size || data.readUInt32BE(at);
    if (!size) at += 4;
    at += n;
    if (at > data.length) throw new Error("it ends too soon");
    return data.subarray(at - n, at);
  });
};

// der is a number of a signature, as DER has it: the bytes are those of SSH.
const der = (n) => Buffer.concat([Buffer.from([2, n.length]), n]);

const verify = async ({ armored, listed, message, origin, host }) => {
  const blob = Buffer.from(armored.split("\n").filter((line) => !line.startsWith("-----")).join(""), "base64");
  const [, , key, namespace, , , made] = fields(blob, 6, 4, 0, 0, 0, 0, 0);
  const application = fields(key, 0, 0, 0, 0)[3];
  const point = fields(Buffer.from(listed, "base64"), 0, 0, 0)[2];
  const [, numbers, flags, counter, , words, extensions] = fields(made, 0, 0, 1, 4, 0, 0, 0);
  const [r, s] = fields(numbers, 0, 0).map(der);
  const asked = Buffer.concat([Buffer.from("SSHSIG"), string(namespace), string(""), string("sha512"), string(hash("sha512", message))]);
  const text = (data) => data.toString("base64url");
  const { verified } = await verifyAuthenticationResponse({
    response: {
      id: "AAAA", rawId: "AAAA", type: "public-key", clientExtensionResults: {},
      response: {
        authenticatorData: text(Buffer.concat([hash("sha256", application), flags, counter, extensions])), clientDataJSON: text(words),
        signature: text(Buffer.concat([Buffer.from([0x30, r.length + s.length]), r, s])),
      },
    },
    expectedChallenge: text(asked), expectedOrigin: origin, expectedRPID: host, requireUserVerification: true,
    credential: {
      id: "AAAA", counter: 0, // COSE's form of a key: EC2, ES256, P-256, x, y
      publicKey: Buffer.concat([Buffer.from("a5010203262001215820", "hex"), point.subarray(1, 33), Buffer.from("225820", "hex"), point.subarray(33)]),
    },
  });
  return verified ? "taken" : "the signature is another's";
};

(async () => {
  for (const line of require("node:fs").readFileSync(0, "utf8").split("\n").filter((line) => line !== "")) {
    console.log((await verify(JSON.parse(line)).catch((e) => "" + e)).replace(/\n/g, " "));
  }
})();
