#if Service
import HummingbirdCore
import HummingbirdHTTP2
import Logging
import NIOCore
import NIOHTTPTypes
import NIOSSL
import NIOTLS

/// A limit of the time that a connection may take for the head of its next request, and of that for the body, however slowly
/// bytes arrive.
///
/// If no request on the connection was answered yet, the peer is told why it ends (408, RFC 9110 §15.5.9). Otherwise it is only
/// closed, so that the client asks again on a new connection.
final class RequestDeadline: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let head: TimeAmount
  private let body: TimeAmount
  private var timer: Scheduled<Void>?
  private var isReadingBody = false
  private var hasAnswered = false

  init(headSeconds: UInt64, bodySeconds: UInt64) {
    (head, body) = (.seconds(Int64(headSeconds)), .seconds(Int64(bodySeconds)))
  }

  func handlerAdded(context: ChannelHandlerContext) { awaitHead(context) }

  func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      isReadingBody = true
      // Reading the body throws this problem then, which is the answer.
      start(context, body) { $1.fireErrorCaught(Problem.tooSlow) }
    case .body: break
    case .end:
      // Unless the answer was given before the end of the request.
      if isReadingBody { timer?.cancel() }
      isReadingBody = false
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) {
      hasAnswered = true
      awaitHead(context)
    }
    context.write(data, promise: promise)
  }

  private func awaitHead(_ context: ChannelHandlerContext) {
    isReadingBody = false
    start(context, head) { $0.end($1) }
  }

  private func start(
    _ context: ChannelHandlerContext, _ limit: TimeAmount,
    _ end: @escaping @Sendable (RequestDeadline, ChannelHandlerContext) -> Void
  ) {
    timer?.cancel()
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: limit) { end(bound.value.0, bound.value.1) }
  }

  private func end(_ context: ChannelHandlerContext) {
    if !hasAnswered {
      let (head, document) = Problem.tooSlow.parts()
      context.write(wrapOutboundOut(.head(head)), promise: nil)
      context.write(wrapOutboundOut(.body(document)), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
    context.close(promise: nil)
  }
}

/// A connection by TLS that ends unless its handshake is done in time, and whose tasks run on its event loop.
struct HandshakeLimitedChannel: ServerChildChannel {
  let base: HTTP2UpgradeChannel
  let seconds: UInt64

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP2UpgradeChannel.Value> {
    let value = base.setup(channel: channel, logger: logger)
    do {
      let pipeline = channel.pipeline.syncOperations
      let tls = try pipeline.handler(type: NIOSSLServerHandler.self)
      try pipeline.addHandler(HandshakeDeadline(seconds: seconds), position: .after(tls))
    } catch { return channel.eventLoop.makeFailedFuture(error) }
    return value
  }

  func handle(value: HTTP2UpgradeChannel.Value, logger: Logger) async {
    await withTaskExecutorPreference(EventLoopTasks(value.channel.eventLoop)) {
      await base.handle(value: value, logger: logger)
    }
  }
}

/// The tasks of a connection, which run on its event loop: a request does not go from one thread to another and back for each
/// message.
private final class EventLoopTasks: TaskExecutor {
  private let loop: any EventLoop

  init(_ loop: any EventLoop) { self.loop = loop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    loop.execute { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// A limit of the time for a TLS handshake.
private final class HandshakeDeadline: ChannelInboundHandler {
  typealias InboundIn = NIOAny

  private let limit: TimeAmount
  private var timer: Scheduled<Void>?

  init(seconds: UInt64) { limit = .seconds(Int64(seconds)) }

  func handlerAdded(context: ChannelHandlerContext) {
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: limit) { bound.value.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case TLSUserEvent.handshakeCompleted = event { timer?.cancel() }
    context.fireUserInboundEventTriggered(event)
  }
}
#endif
