import HoldfastCore
import HoldfastOpenSSL

package let ann: BoundedText<32> = "ann"
package let bob: BoundedText<32> = "bob"
package let hotpMethod = CodeMethod.hotp(.sha1, .six)
package let totpMethod = CodeMethod.totp(.sha1, .six, periodSeconds: 30)
package let counterSealMethod = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:C-QH64")!)
package let timeSealMethod = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QH64-T1M")!)
package let challengeSealMethod = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QH64")!)
package let usersSecret = [UInt8](repeating: 0x5a, count: 32)

/// Returns a user's one-time password at a counter or time step.
package func password(_ position: UInt64, secret: [UInt8] = usersSecret, user: BoundedText<32> = ann) throws -> UserCode
{
  var cryptography = OpenSSLCryptography()
  return UserCode(
    user: user,
    code: try HOTP.code(counter: position, key: secret.span, hash: .sha1, length: .six, using: &cryptography))
}

/// Returns a user's seal over a command, or the refusal of it, at a counter or time step where the method has one.
package func seal(
  _ method: CodeMethod, _ position: UInt64 = 0, challenge: [UInt8] = [], _ command: BoundedText<32> = "lock",
  _ parameters: [BoundedText<64>] = [], isRefusal: Bool = false, secret: [UInt8] = usersSecret,
  user: BoundedText<32> = ann
) throws -> UserCode {
  var cryptography = OpenSSLCryptography()
  guard case .ocra(let suite) = method else { throw CryptographyFailure() }
  let count = parameters.count
  let digest =
    isRefusal
    ? try refusalQuestion(command: command, parameterCount: count, parameter: { parameters[$0] }, using: &cryptography)
    : try sealQuestion(command: command, parameterCount: count, parameter: { parameters[$0] }, using: &cryptography)
  let text = Array(hex(challenge).utf8) + Array(digest)
  let input = OCRAInput(
    counter: suite.hasCounter ? position : nil, question: OCRAQuestion(text.span, for: suite)!,
    timeStep: suite.timeStepSeconds == nil ? nil : position)
  return UserCode(
    user: user, code: try OCRA.code(suite: suite, key: secret.span, input: input, using: &cryptography))
}

/// Returns a user's seal from a counter.
package func counterSeal(
  _ counter: UInt64, _ command: BoundedText<32>, secret: [UInt8] = usersSecret, user: BoundedText<32> = ann
) throws -> UserCode {
  try seal(counterSealMethod, counter, command, secret: secret, user: user)
}
