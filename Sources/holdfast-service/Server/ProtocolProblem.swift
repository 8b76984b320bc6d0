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
    let id = RequestID().description
    let document = problem.document(requestID: id)
    var answer = HTTPResponse(status: problem.status, headerFields: head.headerFields)
    answer.headerFields[.contentType] = Problem.mediaType
    answer.headerFields[.contentLength] = String(document.count)
    answer.headerFields[.requestID] = id
    context.write(wrapOutboundOut(.head(answer)), promise: nil)
    context.write(wrapOutboundOut(.body(ByteBuffer(bytes: document))), promise: promise)
  }
}
#endif
