import Glibc

/// What this host has of Bluetooth.
public struct HostFacts: Sendable, Equatable {
  public enum DiscoveryServer: Sendable, Equatable {
    case ready
    case absent
    /// Its socket is not for this user.
    case forbidden
  }

  let hasKernelSupport: Bool
  let hasL2CAP: Bool
  let hasRFCOMM: Bool
  let adapters: [Adapter]
  let isAdministrator: Bool
  let discoveryServer: DiscoveryServer

  /// Looks at this host. It takes no privilege and changes nothing.
  ///
  /// - Throws: ``BluetoothError/timedOut``, ``BluetoothError/malformed`` where the kernel does not answer as it should.
  public static func gather() throws(BluetoothError) -> HostFacts {
    do throws(BluetoothError) {
      let management = try ManagementSocket()
      return HostFacts(
        hasKernelSupport: true, hasL2CAP: hasProtocol(.l2cap(psm: nil)), hasRFCOMM: hasProtocol(.rfcomm(channel: nil)),
        adapters: try Adapter.all(), isAdministrator: isAdministrator(management),
        discoveryServer: discoveryServer())
    } catch .unsupported {
      return HostFacts(
        hasKernelSupport: false, hasL2CAP: false, hasRFCOMM: false, adapters: [], isAdministrator: false,
        discoveryServer: .absent)
    }
  }

  private static func hasProtocol(_ port: BluetoothPort) -> Bool {
    (try? OpenFile.bluetoothSocket(port)) != nil
  }

  /// The kernel looks at the privilege first, then at whether there is such an adapter.
  private static func isAdministrator(_ management: ManagementSocket) -> Bool {
    do throws(BluetoothError) {
      try management.requireEvents(of: 0)
      return true
    } catch { return error != .permissionDenied }
  }

  private static func discoveryServer() -> DiscoveryServer {
    switch (try? OpenFile.unixSocket(framing: .stream))?.connect(toPath: ServiceRecord.serverPath) {
    case 0, EAGAIN: .ready
    case EACCES, EPERM: .forbidden
    default: .absent
    }
  }
}
