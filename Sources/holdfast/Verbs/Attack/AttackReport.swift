import HoldfastAttack
import HoldfastCharts
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastTransport
import HoldfastVersion

/// The results of all attacks on a device, for people, programs and test servers.
struct AttackReport {
  let endpoint: Endpoint
  let device: DeviceID
  let isDestructive: Bool
  let results: [AttackResult]

  /// The results of attacks that the device did not withstand.
  var unsound: [AttackResult] { results.filter { $0.judgement == .unsound } }

  private var soundCount: Int { results.count { $0.judgement == .sound } }
  private var untriedCount: Int { results.count - soundCount - unsound.count }

  /// One line with the counts.
  var summary: String {
    "\(results.count) attacks: \(soundCount) sound, \(unsound.count) unsound, \(untriedCount) not tried"
  }

  /// The report as one object.
  var json: JSONValue {
    .object([
      ("version", .string(HoldfastVersion.description)), ("endpoint", .string("\(endpoint)")),
      ("transport", .string("\(endpoint.scheme.name)")), ("device_id", .string(hexadecimal(device))),
      ("destructive", .bool(isDestructive)), ("is_sound", .bool(unsound.isEmpty)),
      ("sound", .integer(UInt64(soundCount))), ("unsound", .integer(UInt64(unsound.count))),
      ("not_tried", .integer(UInt64(untriedCount))), ("attacks", .array(results.map(\.json))),
    ])
  }

  /// Writes the report in the format of JUnit, one test case for each attack.
  func writeJUnit(to path: String) throws(Failure) {
    let total = results.reduce(0) { $0 + $1.milliseconds }
    var text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <testsuite name="holdfast attack" tests="\(results.count)" failures="\(unsound.count)" errors="0" \
      skipped="\(untriedCount)" time="\(seconds(total))">

      """
    for result in results { text += result.junit }
    text += "</testsuite>\n"
    do throws(FileError) {
      try Files.writeFileAtomically(Array(text.utf8).span, at: path, mode: 0o644, overwrite: true)
    } catch { throw Failure(making: error).afterResult() }
  }
}

extension AttackResult {
  /// The result for a person.
  var lines: [String] {
    let head = "\(judgement.word.padded(9)) \(attack.id)"
    let body = ["did: \(attack.did)", "due: \(attack.due)"]
    let last: [String] =
      switch judgement {
      case .notTried(let reason): ["not tried: \(reason)"]
      case .sound, .unsound: ["observed: \(observed)"]
      }
    return [head] + (body + last).map { "          \($0)" }
  }

  fileprivate var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("id", .string(attack.id)), ("did", .string(attack.did)), ("due", .string(attack.due)),
      ("observed", judgement == .sound || judgement == .unsound ? .string(observed) : .null),
      ("judgement", .string(judgement.word)), ("milliseconds", .integer(milliseconds)),
    ]
    if case .notTried(let reason) = judgement { members.append(("reason", .string(reason))) }
    return .object(members)
  }

  fileprivate var junit: String {
    let head = "  <testcase classname=\"holdfast.attack\" name=\"\(attack.id)\" time=\"\(seconds(milliseconds))\""
    switch judgement {
    case .sound: return head + "/>\n"
    case .unsound:
      return head + """
        >
            <failure message="\(observed.xml)">\("\(attack.did) A sound device answers: \(attack.due).".xml)</failure>
          </testcase>

        """
    case .notTried(let reason): return head + "><skipped message=\"\(reason.xml)\"/></testcase>\n"
    }
  }
}

/// Returns seconds with three decimals.
private func seconds(_ milliseconds: UInt64) -> String {
  let fraction = String(milliseconds % 1000 + 1000).dropFirst()
  return "\(milliseconds / 1000).\(fraction)"
}

extension String {
  /// The text inside an element or attribute of XML, without invisible characters.
  fileprivate var xml: String { Picture.escaped(printable) }
}
