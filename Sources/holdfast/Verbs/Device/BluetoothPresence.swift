import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastTransport

/// The advertisements that let peers find a server, and the acceptors that let them pair with its host. They end with
/// this value.
struct BluetoothPresence {
  private var publications: [Publication] = []
  private var acceptors: [PairingAcceptor] = []

  /// Starts the advertisements and acceptors. A failure is only a warning, because the device can still be reached by
  /// its address and number.
  ///
  /// - Parameters:
  ///   - standing: Returns the progress of a peer that is linked by Low Energy.
  ///   - log: The log for the person who runs the device.
  init(
    of endpoints: [Endpoint], isPairing: Bool, standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding,
    log: LogOutput
  ) {
    // The limit covers the lines that hosts in range cause.
    let limit = LineLimit(linesAMinute: 10, clock: SystemClock())
    for endpoint in endpoints {
      do throws(BluetoothError) {
        let publication = try Publication(of: endpoint, name: hostName(), standing: standing) { notice in
          limit.admitted(notice.line).forEach(log.write)
        }
        if let publication { publications.append(publication) }
      } catch {
        log.warn(
          "\(endpoint) cannot be found by a scan: \(error.publicationText(isRecord: endpoint.scheme.radio == .classic))"
        )
      }
    }
    guard isPairing else { return }
    for adapter in Set(endpoints.filter { $0.scheme.radio != nil }.map(\.adapter)) {
      do throws(BluetoothError) { acceptors.append(try PairingAcceptor(adapter: adapter)) } catch {
        log.warn("pairing is not possible: \(Failure(error, adapter: adapter.map { "hci\($0)" }).message)")
      }
    }
  }
}

extension AdvertisementNotice {
  /// The log line for the person who runs the device.
  fileprivate var line: LogLine {
    switch self {
    case .unreachable(let adapter, let error):
      let reason = Failure(error, adapter: "hci\(adapter)").message
      return LogLine(
        event: "unreachable", sentence: "warning: hci\(adapter): provers cannot connect by Low Energy: \(reason)",
        members: [("adapter", .word("hci\(adapter)")), ("reason", .text(reason))])
    case .reachable(let adapter, let milliseconds):
      return LogLine(
        event: "reachable",
        sentence: "hci\(adapter): provers can connect by Low Energy again, after \(milliseconds) ms",
        members: [("adapter", .word("hci\(adapter)")), ("milliseconds", .number(UInt64(milliseconds)))])
    case .ended(let adapter, let host):
      return LogLine(
        event: "link-ended",
        sentence:
          "warning: hci\(adapter): the link to \(host) was ended, because it kept others out and proved nothing",
        members: [("adapter", .word("hci\(adapter)")), ("peer", .text(host.description))])
    }
  }
}

extension BluetoothError {
  fileprivate func publicationText(isRecord: Bool) -> String {
    guard isRecord, self == .permissionDenied else { return Failure(self, adapter: nil).message }
    return "the SDP server accepts no records from this user"
  }
}

private func hostName() -> String {
  var name = [CChar](repeating: 0, count: 65)
  guard unsafe gethostname(&name, name.count - 1) == 0 else { return "" }
  return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
