import Glibc
import HoldfastCore
import HoldfastLinux

/// The state of a vault for an app at the moment, as far as files and an agent show it.
public enum VaultPresence: Sendable, Equatable {
  /// There is no vault, or none that is whole.
  case missing
  /// The vault is there, and no agent holds its key.
  case locked
  /// An agent holds the key, so that nobody has to be asked for a passcode.
  case unlocked
  /// The key is gone for good: the owner wiped the vault, or too many wrong passcodes were tried.
  case wiped
}

extension Vault {
  /// Returns what an app can do with the vault at the moment.
  ///
  /// - Parameter agent: the path of an agent's socket; nil for none. An agent that cannot be reached holds nothing.
  /// - Throws: ``VaultFault/file(_:)``, ``VaultFault/hostSecret(_:)``, ``VaultFault/cryptography``.
  public func presence(agent: String? = nil) throws(VaultFault) -> VaultPresence {
    let status: Status
    do throws(VaultFault) { status = try self.status() } catch {
      switch error {
      case .wiped: return .wiped
      case .missing, .incomplete, .damaged: return .missing
      default: throw error
      }
    }
    guard let agent, let names = try? AgentClient(path: agent).names() else { return .locked }
    return names.contains(status.heldName) ? .unlocked : .locked
  }

  /// Returns the presence now, and from then on each other one, until the task that reads them is cancelled or the sequence is
  /// released: an app is told that its vault was locked, unlocked, wiped or made anew, whichever process did it.
  ///
  /// The kernel reports changes of the vault's folder and of the agent's socket (inotify(7)), which the agent touches when it holds
  /// other secrets than before; no timer runs. An agent that is killed is noticed with the next change.
  ///
  /// - Parameter agent: the path of an agent's socket; nil for none.
  /// - Returns: the presences. The sequence ends with an error of ``presence(agent:)``, or with ``VaultFault/busy`` if the system has
  ///   no thread or watch for it.
  public func presences(agent: String? = nil) -> AsyncThrowingStream<VaultPresence, any Error> {
    AsyncThrowingStream { continuation in
      guard let stop = try? WakeUp() else { return continuation.finish(throwing: VaultFault.busy) }
      continuation.onTermination = { _ in stop.raise() }
      let isStarted = Thread.detach {
        do throws(VaultFault) {
          try report(agent, until: stop) { continuation.yield($0) }
          continuation.finish()
        } catch { continuation.finish(throwing: error) }
      }
      if !isStarted { continuation.finish(throwing: VaultFault.busy) }
    }
  }

  private func report(
    _ agent: String?, until stop: WakeUp, _ yield: (VaultPresence) -> Void
  ) throws(VaultFault) {
    let watch: FolderWatch
    do throws(SystemError) { watch = try FolderWatch() } catch { throw .busy }
    var last: VaultPresence?
    repeat {
      // The watches come first, so that nothing happens between a look and its watch.
      do throws(SystemError) {
        try watch.watch(path)
        if let agent { try watch.watch(Self.folder(of: agent)) }
      } catch { throw .busy }
      let now = try presence(agent: agent)
      if now != last { yield(now) }
      last = now
    } while watch.wait(until: stop)
  }

  private static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

extension Vault.Status {
  /// The id in hexadecimal digits.
  package var idText: String { id.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

  /// The name under which an agent holds the key.
  package var heldName: String { "vault:\(idText)" }
}
