import HoldfastLinux
import HoldfastTransport

/// The places at which a verb listens: the endpoints of `--listen`, of which the service manager (systemd) may have passed some as
/// sockets that already listen.
struct ListeningPlaces {
  /// The endpoints at which the verb has to begin to listen.
  let endpoints: [Endpoint]
  /// The listeners at sockets that were passed.
  let listeners: [Listener]

  /// Reads the values of `--listen`, and takes the sockets that were passed. Each of these must be named by one of the endpoints.
  init(_ arguments: [String]) throws(Failure) {
    var sockets = try Self.takeSockets()
    var (endpoints, listeners): ([Endpoint], [Listener]) = ([], [])
    for text in arguments {
      let endpoint = try Endpoint(argument: text)
      guard let index = sockets.firstIndex(where: { $0.isNamed(by: endpoint) }) else {
        endpoints.append(endpoint)
        continue
      }
      let socket = sockets.remove(at: index)
      guard socket.framing == endpoint.scheme.framing else {
        throw Failure(
          .usage, "\(endpoint): the service manager passed a socket of another type",
          hint: "in the .socket unit, ListenSequentialPacket= is for unix:PATH, and ListenStream= for unix-stream:PATH")
      }
      guard endpoint.access == nil else {
        throw Failure(
          .usage, "\(endpoint): the service manager made this socket, and determines who may connect",
          hint: "set SocketMode= and SocketGroup= in the .socket unit, and remove mode and group here")
      }
      do throws(TransportError) { listeners.append(try Listener(socket, at: endpoint)) } catch {
        throw Failure(error, endpoint: endpoint)
      }
    }
    if let socket = sockets.first {
      throw Failure(
        .usage, "the service manager passed a socket at \(socket.path.shellWord), which no --listen names",
        hint: "add \("--listen unix:\(socket.path)".shellWord), or correct the path in the .socket unit")
    }
    (self.endpoints, self.listeners) = (endpoints, listeners)
  }

  /// All endpoints, in an order that does not matter.
  var all: [Endpoint] { endpoints + listeners.map(\.endpoint) }

  private static func takeSockets() throws(Failure) -> [PassedSocket] {
    let descriptors: Range<Int32>
    do throws(SystemError) { descriptors = try ServiceManager.takeDescriptors() } catch {
      throw Failure(
        .usage, "LISTEN_FDS does not count the open descriptors that a service manager passes",
        hint: "leave the variables LISTEN_PID and LISTEN_FDS to systemd")
    }
    return try descriptors.map { descriptor throws(Failure) in
      do throws(PassedSocket.Fault) { return try PassedSocket(taking: descriptor) } catch {
        throw Failure(
          .usage,
          error == .datagrams
            ? "the service manager passed a socket of datagrams, which has no connections"
            : "descriptor \(descriptor), which the service manager passed, is not a listening socket in the file system",
          hint: "in the .socket unit, use ListenSequentialPacket=PATH")
      }
    }
  }
}
