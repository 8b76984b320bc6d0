#if Service
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// The problem document for a request that is not HTTP: the server itself answers it with an empty body.
///
/// Only a request that reached the routes has an answer with an id.
final class ProtocolProblem: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private var error: HTTPParserError?

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? HTTPParserError { self.error = error }
    context.fireErrorCaught(error)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard let error, case .head(let head) = unwrapOutboundIn(data), head.status == .badRequest,
      head.headerFields[.requestID] == nil
    else {
      context.write(data, promise: promise)
      return
    }
    let problem: Problem = error == .headerOverflow ? .headTooLarge : .malformed("This is not HTTP.")
    let (answer, document) = problem.parts(head.headerFields)
    context.write(wrapOutboundOut(.head(answer)), promise: nil)
    context.write(wrapOutboundOut(.body(document)), promise: promise)
  }
}

extension Problem {
  /// The answer to a request that does not reach the routes: its head, with an id of its own, and its document.
  func parts(_ fields: HTTPFields = [.connection: "close"]) -> (head: HTTPResponse, document: ByteBuffer) {
    let id = RequestID().description
    let document = document(requestID: id)
    var head = HTTPResponse(status: status, headerFields: fields)
    head.headerFields[.contentType] = Self.mediaType
    head.headerFields[.contentLength] = String(document.count)
    head.headerFields[.requestID] = id
    return (head, ByteBuffer(bytes: document))
  }
}
#endif
