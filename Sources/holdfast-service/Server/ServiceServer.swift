#if Service
import HoldfastLinux
import HoldfastService
import Hummingbird
import HummingbirdCore
import HummingbirdHTTP2
import Logging
import NIOCore
import NIOHTTPTypes
import NIOPosix
import NIOSSL
import ServiceLifecycle

/// The HTTP server of one instance.
struct ServiceServer: Sendable {
  let fleet: Fleet
  let configuration: ServiceConfiguration
  let logger: Logger
  let metrics: PrometheusMetrics

  /// Serves until SIGTERM or SIGINT, then answers the requests that have begun.
  ///
  /// - Parameter onStart: Is called with the port once the server listens.
  func run(onStart: @escaping @Sendable (Int) -> Void) async throws {
    let threads = NIOThreadPool(numberOfThreads: Int(configuration.databaseConnections))
    threads.start()
    let application = Application(
      router: router(threads), server: try server(),
      configuration: ApplicationConfiguration(
        address: .hostname(configuration.host, port: Int(configuration.port)), serverName: "holdfast-service",
        availableConnectionsDelegate: MaximumAvailableConnections(Int(configuration.maximumConnections))),
      onServerRunning: { channel in onStart(channel.localAddress?.port ?? 0) }, logger: logger)
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [application, ManagerNotices()], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
    try await group.run()
    try await threads.shutdownGracefully()
  }

  private func router(_ threads: NIOThreadPool) -> Router<ServiceRequestContext> {
    let router = Router(context: ServiceRequestContext.self)
    router.add(middleware: ServiceMiddleware(limiter: RateLimiter(perMinute: configuration.requestsPerMinute)))
    let service = ServiceContext(fleet: fleet, threads: threads, configuration: configuration)
    let routes = Routes(router)
    PublicRoutes(service: service).add(to: routes)
    AdministrationRoutes(service: service).add(to: routes)
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
      additionalChannelHandlers: [RequestDeadline(seconds: idle)], idleTimeout: .seconds(Int64(idle)),
      httpDecoderConfiguration: .init(maxHeaderFieldSize: 8192, maxHeaderListSize: 16_384, maxHeaderFieldCount: 64))
    guard let certificate = configuration.certificate, let key = configuration.key else {
      return .http1(configuration: http1)
    }
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMFile(ServiceManager.credential(certificate) ?? certificate)
        .map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(file: ServiceManager.credential(key) ?? key, format: .pem)))
    tls.minimumTLSVersion = .tlsv13
    return try .http2Upgrade(
      tlsConfiguration: tls,
      configuration: HTTP2ChannelConfiguration(
        idleTimeout: .seconds(idle), gracefulCloseTimeout: .seconds(10), streamConfiguration: http1))
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

/// A limit of the time that a connection may take for the head of its next request, however slowly bytes arrive.
private final class RequestDeadline: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let limit: TimeAmount
  private var timer: Scheduled<Void>?

  init(seconds: UInt64) { limit = .seconds(Int64(seconds)) }

  func handlerAdded(context: ChannelHandlerContext) { start(context) }

  func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .head = unwrapInboundIn(data) { timer?.cancel() }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) { start(context) }
    context.write(data, promise: promise)
  }

  private func start(_ context: ChannelHandlerContext) {
    timer?.cancel()
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: limit) { bound.value.close(promise: nil) }
  }
}
#endif
