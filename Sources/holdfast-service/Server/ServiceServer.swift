#if Service
import Glibc
import HoldfastLinux
import HoldfastService
import Hummingbird
import HummingbirdCore
import HummingbirdHTTP2
import Logging
import Metrics
import NIOCore
import NIOHTTPTypes
import NIOPosix
import NIOSSL
import ServiceLifecycle
import UnixSignals

/// The HTTP server of one instance.
struct ServiceServer: Sendable {
  let fleet: Fleet
  let configuration: ServiceConfiguration
  let logger: Logger
  let metrics: PrometheusMetrics

  /// The connections that are accepted one after the other, before those that exist get their turn. With NIO's 4, new provers wait
  /// much longer for their connection than for their answers.
  private static let acceptedAtOnce: UInt = 64

  /// The longest time for the answers to the requests that have begun, once the server is to stop.
  private static let stopDuration = Duration.seconds(30)

  /// Serves until SIGTERM or SIGINT, then answers the requests that have begun.
  ///
  /// - Parameter onStart: Is called with the port once the server listens.
  func run(onStart: @escaping @Sendable (Int) -> Void) async throws {
    let threads = NIOThreadPool(numberOfThreads: Int(configuration.databaseConnections))
    threads.start()
    let application = Application(
      router: try router(threads), server: try server(),
      configuration: ApplicationConfiguration(
        address: .hostname(configuration.host, port: Int(configuration.port)), serverName: "holdfast-service",
        availableConnectionsDelegate: MaximumAvailableConnections(Int(configuration.maximumConnections))),
      onServerRunning: { channel in
        try? await channel.setOption(.maxMessagesPerRead, value: Self.acceptedAtOnce).get()
        onStart(channel.localAddress?.port ?? 0)
      }, logger: logger)
    var stopping = ServiceGroupConfiguration(
      services: [
        .init(service: application), .init(service: ManagerNotices(), successTerminationBehavior: .ignore),
        .init(
          service: Notices.aboutReceipts(in: fleet, threads: threads, logger: logger),
          successTerminationBehavior: .ignore),
        .init(
          service: Notices.aboutTrust(in: fleet, threads: threads, logger: logger), successTerminationBehavior: .ignore),
      ],
      gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    stopping.maximumGracefulShutdownDuration = Self.stopDuration
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    let ending = Task { await endAtSecondSignal(of: signals) }
    defer { ending.cancel() }
    try await ServiceGroup(configuration: stopping).run()
    try await threads.shutdownGracefully()
  }

  private func router(_ threads: NIOThreadPool) throws -> Router<ServiceRequestContext> {
    let router = Router(context: ServiceRequestContext.self)
    router.add(middleware: ServiceMiddleware(limiter: RateLimiter(perMinute: configuration.requestsPerMinute)))
    let service = ServiceContext(fleet: fleet, threads: threads, configuration: configuration)
    let routes = Routes(router)
    PublicRoutes(service: service).add(to: routes)
    AdministrationRoutes(service: service).add(to: routes)
    if configuration.hasConsole { ConsoleRoutes(service: service, templates: try Templates()).add(to: routes) }
    routes.add(.metrics) { [metrics] _, _ in
      Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: metrics.text)))
    }
    routes.addRefusals()
    return router
  }

  /// HTTP/1.1 and HTTP/2 over TLS 1.3; without a certificate, HTTP/1.1.
  private func server() throws -> HTTPServerBuilder {
    let idle = configuration.idleSeconds
    let http1 = HTTP1Channel.Configuration(
      additionalChannelHandlers: [
        ProtocolProblem(), RequestDeadline(headSeconds: idle, bodySeconds: configuration.bodySeconds),
      ],
      idleTimeout: .seconds(Int64(idle)),
      httpDecoderConfiguration: .init(maxHeaderFieldSize: 8192, maxHeaderListSize: 16_384, maxHeaderFieldCount: 64))
    guard let certificate = configuration.certificate, let key = configuration.key else {
      return .http1(configuration: http1)
    }
    let chain = try NIOSSLCertificate.fromPEMFile(ServiceManager.credential(certificate) ?? certificate)
    if let first = chain.first { report(first) }
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(file: ServiceManager.credential(key) ?? key, format: .pem)))
    tls.minimumTLSVersion = .tlsv13
    let configuration = HTTP2ChannelConfiguration(
      idleTimeout: .seconds(idle), gracefulCloseTimeout: .seconds(10), streamConfiguration: http1)
    return HTTPServerBuilder { [tls] responder in
      HandshakeLimitedChannel(
        base: try HTTP2UpgradeChannel(tlsConfiguration: tls, configuration: configuration, responder: responder),
        seconds: min(idle, 10))
    }
  }
}

/// The notices to the service manager that this process is alive, as often as it asks for them, and that it has begun to end.
private struct ManagerNotices: Service {
  func run() async throws {
    let pauseMicroseconds = ServiceManager.watchdogMicroseconds.map { Int64(clamping: $0 / 2) } ?? .max / 1000
    try? await cancelWhenGracefulShutdown {
      while true {
        ServiceManager.tell(.alive)
        try await Task.sleep(for: .microseconds(pauseMicroseconds))
      }
    }
    ServiceManager.tell(.stopping)
  }
}

extension ServiceServer {
  /// The days before its end at which a certificate should have been replaced.
  private static let warningDays = 14

  /// Logs a certificate that has expired or soon will, and shows its end as a metric. Provers refuse an expired one.
  private func report(_ certificate: NIOSSLCertificate) {
    let end = Int(certificate.notValidAfter)
    Gauge(label: "holdfast_certificate_expires_unix_seconds").record(end)
    let remaining = end - Int(time(nil))
    if remaining <= 0 {
      logger.error("the certificate has expired, and provers refuse it")
    } else if remaining < Self.warningDays * 86_400 {
      logger.warning("the certificate expires soon", metadata: ["days": "\(remaining / 86_400)"])
    }
  }
}

/// The end of the process at the second signal: the first one has the server answer the requests that have begun.
///
/// It is not a service of the group, which ends its services one after the other.
private func endAtSecondSignal(of signals: UnixSignalsSequence) async {
  var hasBegun = false
  for await signal in signals {
    if hasBegun {
      // The queue that saw the signal may keep it from every thread, this one included.
      Glibc.signal(signal.rawValue, SIG_DFL)
      var mask = sigset_t()
      unsafe sigemptyset(&mask)
      unsafe sigaddset(&mask, signal.rawValue)
      unsafe pthread_sigmask(SIG_UNBLOCK, &mask, nil)
      raise(signal.rawValue)
    }
    hasBegun = true
  }
}
#endif
