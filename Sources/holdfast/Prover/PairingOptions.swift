import ArgumentParser
import HoldfastTransport

struct PairingOptions: ParsableArguments {
  @Flag(help: "Let the Bluetooth device pair with this host while it is connected to, which takes CAP_NET_ADMIN.")
  var pair = false

  /// What accepts the pairing for as long as it lives; nil where that is not asked for.
  func acceptor(for endpoint: Endpoint) throws(Failure) -> PairingAcceptor? {
    guard pair else { return nil }
    guard case .bluetooth(let device, _) = endpoint.address else {
      throw Failure(.usage, "--pair is for Bluetooth, and \(endpoint) is not")
    }
    do throws(BluetoothError) { return try PairingAcceptor(adapter: endpoint.adapter, peer: device) } catch {
      throw Failure(error, adapter: endpoint.adapter.map { "hci\($0)" })
    }
  }
}
