import Glibc
import HoldfastOpenSSL
import HoldfastTransport

/// What lets peers find a server and pair with its host. It ends with this value.
struct BluetoothPresence {
  private var publications: [Publication] = []
  private var acceptors: [PairingAcceptor] = []

  /// What cannot be had is a warning: a device is reached by its address and number all the same.
  ///
  /// - Parameters:
  ///   - standing: how far the peers of a host have come that is linked by Low Energy.
  ///   - log: what the person who runs the device reads.
  init(
    of endpoints: [Endpoint], isPairing: Bool, standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding,
    log: LogOutput
  ) {
    // What hosts in range cause.
    let limit = LineLimit(linesAMinute: 10, clock: SystemClock())
    for endpoint in endpoints {
      do throws(BluetoothError) {
        let publication = try Publication(of: endpoint, name: hostName(), standing: standing) { notice in
          limit.admitted(notice.line).forEach(log.write)
        }
        if let publication { publications.append(publication) }
      } catch {
        log.warn("\(endpoint) cannot be found by a scan: \(error.publicationText(isRecord: !endpoint.isLowEnergy))")
      }
    }
    guard isPairing else { return }
    for adapter in Set(endpoints.filter { $0.port != nil }.map(\.adapter)) {
      do throws(BluetoothError) { acceptors.append(try PairingAcceptor(adapter: adapter)) } catch {
        log.warn("nobody can pair: \(Failure(error, adapter: adapter.map { "hci\($0)" }).message)")
      }
    }
  }
}

extension Endpoint {
  fileprivate var isLowEnergy: Bool { port?.isLowEnergy == true }
}

extension AdvertisementNotice {
  /// What the person who runs the device reads.
  fileprivate var line: LogLine {
    switch self {
    case .unreachable(let adapter, let error):
      let reason = Failure(error, adapter: "hci\(adapter)").message
      return LogLine(
        event: "unreachable", sentence: "warning: hci\(adapter): nobody can connect by Low Energy: \(reason)",
        members: [("adapter", .word("hci\(adapter)")), ("reason", .text(reason))])
    case .reachable(let adapter, let milliseconds):
      return LogLine(
        event: "reachable",
        sentence: "hci\(adapter): provers can connect by Low Energy again, after \(milliseconds) ms",
        members: [("adapter", .word("hci\(adapter)")), ("milliseconds", .number(UInt64(milliseconds)))])
    case .ended(let adapter, let host):
      return LogLine(
        event: "link-ended",
        sentence: "warning: hci\(adapter): the link of \(host) was ended: it kept others out and proved nothing",
        members: [("adapter", .word("hci\(adapter)")), ("peer", .text(host.description))])
    }
  }
}

extension BluetoothError {
  fileprivate func publicationText(isRecord: Bool) -> String {
    guard isRecord, self == .permissionDenied else { return Failure(self, adapter: nil).message }
    return "the SDP server takes no records of this user"
  }
}

private func hostName() -> String {
  var name = [CChar](repeating: 0, count: 65)
  guard unsafe gethostname(&name, name.count - 1) == 0 else { return "" }
  return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
