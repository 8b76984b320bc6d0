import Glibc
import HoldfastTransport

/// What lets peers find a server and pair with its host. It ends with this value.
struct BluetoothPresence {
  private var publications: [Publication] = []
  private var acceptors: [PairingAcceptor] = []

  /// What cannot be had is a warning: a device is reached by its address and number all the same.
  init(of endpoints: [Endpoint], isPairing: Bool, warn: (String) -> Void) {
    for endpoint in endpoints {
      do throws(BluetoothError) {
        if let publication = try Publication(of: endpoint, name: hostName()) { publications.append(publication) }
      } catch {
        warn("\(endpoint) cannot be found by a scan: \(error.publicationText(isRecord: !endpoint.isLowEnergy))")
      }
    }
    guard isPairing else { return }
    for adapter in Set(endpoints.filter { $0.port != nil }.map(\.adapter)) {
      do throws(BluetoothError) { acceptors.append(try PairingAcceptor(adapter: adapter)) } catch {
        warn("nobody can pair: \(Failure(error, adapter: adapter.map { "hci\($0)" }).message)")
      }
    }
  }
}

extension Endpoint {
  fileprivate var isLowEnergy: Bool { port?.isLowEnergy == true }
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
