import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport

/// Reading a PIN, the rules for new ones, and a comparison.
func pin() throws -> Bool {
  for (text, fault) in [("2963", nil), ("1234", PINFault.run), ("1212", .repetition), ("198407", .year)] {
    let digits: [UInt8] = marked(Array(text.utf8))
    let first = try PIN(digits.span)
    let second = try PIN(digits.span)
    guard first.ruleFault == fault, first.isSame(as: second) else { return false }
  }
  let strange: [UInt8] = marked(Array("12a4".utf8))
  do { _ = try PIN(strange.span) } catch { return true }
  return false
}

/// A secret under the masks of a PIN, a key and the host. The PIN itself is not marked: scrypt's addresses depend on its password.
func blindedSecret() throws -> Bool {
  let plain = [UInt8](0..<20)
  let secret: SecretBytes = marked(plain)
  let (key, host): ([UInt8], [UInt8]) = (
    marked([UInt8](repeating: 5, count: 32)), marked([UInt8](repeating: 6, count: 32))
  )
  func protector(_ digits: String) throws -> ProtectionSecret {
    ProtectionSecret(
      pin: try PIN(Array(digits.utf8).span), key: ExternalKey(key.span), host: ExternalKey(host.span))
  }
  var random = SystemRandom()
  let cost = ScryptCost(logarithm: 1, blockSize: 1, parallelization: 1)!
  let right = try protector("2963")
  let protection = try Protection.fresh(for: right, cost: cost, random: &random)
  let blinded = try BlindedSecret(blinding: secret, with: right, as: protection)
  let opened = try blinded.unblinded(with: right)
  let other = try blinded.unblinded(with: try protector("2964"))
  let isOpened = opened.withBytes { constantTimeEqual($0, plain.span) }
  return isOpened && !other.withBytes { constantTimeEqual($0, plain.span) }
}
