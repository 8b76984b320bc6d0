import ArgumentParser
import HoldfastFormats
import HoldfastLinux
import HoldfastTransport
import Synchronization

struct Scan: Verb {
  static let configuration = CommandConfiguration(
    abstract: "List Bluetooth devices in range, and show which are Holdfast devices.",
    discussion: """
      The scan covers Low Energy first, for about five seconds, then classic Bluetooth; it requires CAP_NET_ADMIN. Then the \
      command asks the classic Bluetooth devices by SDP, connects to those that call themselves Holdfast devices, and waits \
      for their challenges. Ctrl-C ends the scan and lists the devices found so far.
      """,
    examples: [
      "holdfast scan",
      "holdfast scan --adapter hci0 --seconds 20 --json",
    ])

  @Option(help: "The adapter to scan with, such as hci0.")
  var adapter: String?

  @Option(help: "The duration of the scan in seconds.")
  var seconds: Int = 10

  @OptionGroup var output: OutputOptions

  /// The longest time for which one peer may delay the list, in milliseconds. The radio gives up on a peer out of range
  /// after five seconds.
  private static let answerMilliseconds = 6000

  mutating func perform() throws(Failure) {
    guard (1...3600).contains(seconds) else { throw Failure(.usage, "--seconds must be from 1 to 3600") }
    let number = try adapter.map { text throws(Failure) in try adapterNumber(text) }
    TerminationSignals.hold()
    let isEnded = Flag()
    let devices: [FoundPeer]
    do throws(BluetoothError) {
      let scan = try DeviceScan(try Adapter.chosen(number))
      TerminationSignals.whenRaised {
        isEnded.raise()
        scan.cancel()
      }
      devices = try scan.run(milliseconds: seconds * 1000) { count in progress("\(count) found") }
    } catch { throw Failure(error, adapter: adapter) }
    let sightings = devices.enumerated().map { index, device in
      progress("asking \(index + 1) of \(devices.count)")
      return isEnded.isRaised ? Sighting(device) : Sighting(device, asking: number, Self.answerMilliseconds)
    }
    report(sightings)
  }

  private func report(_ sightings: [Sighting]) {
    if output.json { return Console.result(.object([("devices", .array(sightings.map(\.json)))])) }
    for line in sightings.flatMap(\.lines) { Console.result(line) }
    if sightings.isEmpty { Console.note("no discoverable device is in range") }
  }

  private func progress(_ text: String) {
    if Console.isTerminal { Console.note(text) }
  }
}

/// Parses the number of an adapter such as `hci0`.
private func adapterNumber(_ text: String) throws(Failure) -> UInt16 {
  guard text.hasPrefix("hci"), let number = UInt16(text.dropFirst(3)), text == "hci\(number)" else {
    throw Failure(.usage, "the adapter is not hci0, hci1, …")
  }
  return number
}

/// A flag that any thread may raise once.
private final class Flag: Sendable {
  private let value = Atomic(false)
  var isRaised: Bool { value.load(ordering: .relaxed) }
  func raise() { value.store(true, ordering: .relaxed) }
}

/// A Bluetooth peer that was found, with its answers.
private struct Sighting {
  let device: FoundPeer
  private var answers: [(endpoint: Endpoint, attempt: ConnectionAttempt)] = []
  private var fault: TransportError?
  private let wasAsked: Bool

  init(_ device: FoundPeer) {
    self.device = device
    wasAsked = false
  }

  init(_ device: FoundPeer, asking adapter: UInt16?, _ milliseconds: Int) {
    self.device = device
    wasAsked = true
    let deadline = Deadline(afterMilliseconds: milliseconds)
    do throws(TransportError) {
      for endpoint in try device.endpoints(adapter: adapter, by: deadline) {
        answers.append(
          (endpoint, ConnectionAttempt(to: endpoint, timeoutMilliseconds: deadline.remainingMilliseconds)))
      }
    } catch { fault = error }
  }

  /// A line for the peer, and one for each endpoint of a Holdfast device there.
  var lines: [String] {
    let strength = device.signalStrength.map { "\($0) dBm" } ?? ""
    let head = "\(device.device.address)  \(kind.padded(10))  \(strength.padded(8))  \(device.name ?? "")"
    return [head] + answers.map { "  " + $0.attempt.text(at: $0.endpoint) } + remarks
  }

  private var remarks: [String] {
    guard device.namesService && answers.isEmpty else { return [] }
    if let faultText { return ["  calls itself a Holdfast device: \(faultText)"] }
    return ["  calls itself a Holdfast device" + (wasAsked ? ", but does not announce a PSM or channel" : "")]
  }

  private var faultText: String? {
    guard let fault, let endpoint = try? Endpoint(parsing: "l2cap:\(device.device.address)") else { return nil }
    return Failure(fault, endpoint: endpoint).message
  }

  private var kind: String {
    switch device.device.kind {
    case .classic: "classic"
    case .lowEnergyPublic: "le"
    case .lowEnergyRandom: "le random"
    }
  }

  var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("address", .string("\(device.device.address)")), ("kind", .string(kind)),
      ("is_holdfast", .bool(device.namesService || !answers.isEmpty)),
      ("endpoints", .array(answers.map { json($0.endpoint, $0.attempt) })),
    ]
    if let name = device.name { members.append(("name", .string(name))) }
    // The number is negative, which this program's JSON does not support.
    if let strength = device.signalStrength { members.append(("rssi_dbm", .string("\(strength)"))) }
    if let faultText { members.append(("error", .string(faultText))) }
    return .object(members)
  }

  private func json(_ endpoint: Endpoint, _ attempt: ConnectionAttempt) -> JSONValue {
    guard case .device(let id) = attempt else {
      return .object([("endpoint", .string("\(endpoint)")), ("error", .string(attempt.text(at: endpoint)))])
    }
    return .object([("endpoint", .string("\(endpoint)")), ("device_id", .string(id))])
  }
}
