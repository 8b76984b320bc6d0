// Usage: ConstantTime WORK
//
// Does a work whose secrets are marked, and checks its result. Under valgrind's memcheck, a branch or an address that depends on a
// secret is an error. Exit status: 0, the result is right; 1, it is wrong; 2, there is no such work; 3, valgrind does not run this.

import CSecretMarks
import Glibc

let works: [String: () throws -> Bool] = [
  "proof": proof, "hotp": counterCodes, "totp": timeCodes, "ocra": ocra, "seals": seals,
  "pin": pin, "blinded-secret": blindedSecret, "base64": base64, "base32": base32, "base16": base16,
  "token-cose": signedToken, "token-mac": authenticatedToken, "token-jose": joseToken,
  "token-jose-wrapped": wrappedJOSEToken, "key-wrap": keyWrap,
  "round-hotp": counterPasswordRound, "round-totp": timePasswordRound, "round-counter-seal": counterSealRound,
  "round-time-seal": timeSealRound,
  "vault": vault,
  // These must be found.
  "planted-early-exit": plantedEarlyExit, "planted-table": plantedTable, "planted-code-check": plantedCodeCheck,
  "planted-switch": plantedSwitch,
]
guard CommandLine.arguments.count == 2, let work = works[CommandLine.arguments[1]] else {
  print("usage: ConstantTime \(works.keys.sorted().joined(separator: "|"))")
  exit(2)
}
guard marks_are_checked() else { exit(3) }
exit(try work() ? 0 : 1)
