import HoldfastCore
import HoldfastFormats

/// A text for people about a command, as in `Open safe {1} for {2}`, which a request for a seal shows in addition to the command.
///
/// `{1}` to `{6}` stand for the parameters, and a missing one for nothing. Nothing else is interpreted, neither in the text nor in
/// the parameters.
package struct RequestTemplate: Sendable, Equatable {
  /// The length of the longest template, in UTF-8 bytes.
  static let maximumByteCount = 128

  /// The template, 1 to 128 bytes, without control characters and invisible ones.
  package let text: String

  /// Creates a template; nil for a text that is too long, is empty, or has characters that cannot be seen.
  package init?(_ text: String) {
    guard (1...Self.maximumByteCount).contains(text.utf8.count), text.printable.utf8.elementsEqual(text.utf8) else {
      return nil
    }
    self.text = text
  }

  /// Returns the text with the parameters in place of their numbers.
  package func filled(with parameters: [String]) -> String {
    var filled = ""
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      let next = rest.prefix(2)
      guard scalar == "{", next.count == 2, next.last == "}", let digit = next.first,
        (0x31...0x30 + UInt32(SealRequestContents.maximumParameterCount)).contains(digit.value)
      else {
        filled.unicodeScalars.append(scalar)
        continue
      }
      let index = Int(digit.value - 0x31)
      if parameters.indices.contains(index) { filled += parameters[index] }
      rest.removeFirst(2)
    }
    return filled
  }
}

extension RequestTemplate {
  /// Reads the member `text` of a command's rule.
  init(_ member: JSONMember) throws(JSONMistake) {
    guard let template = member.value.text.flatMap({ RequestTemplate($0) }) else {
      throw member.mistake(.form("a text of 1 to \(Self.maximumByteCount) bytes without control characters"))
    }
    self = template
  }
}

/// The command that `seal-request` names, with its user and its parameters.
struct SealedCommand {
  let user: BoundedText<32>
  let command: BoundedText<32>
  let parameters: [BoundedText<64>]

  /// Reads the parameters of `seal-request`; nil if the first two are no user and no command.
  init?(_ request: borrowing Request) {
    let count = request.parameterCount ?? 0
    guard count >= 2 else { return nil }
    let (first, second) = (request.parameter(0), request.parameter(1))
    guard let user = BoundedText<32>(first.bytes), let command = BoundedText<32>(second.bytes), !user.isEmpty,
      !command.isEmpty
    else { return nil }
    (self.user, self.command) = (user, command)
    parameters = (2..<count).map { request.parameter($0) }
  }

  /// The request for the command itself, without codes; never nil for a request that was read.
  var request: Request? {
    var request = Request(command: command)
    for parameter in parameters {
      do throws(EncodingFault) { try request.append(parameter: parameter) } catch { return nil }
    }
    return request
  }
}
