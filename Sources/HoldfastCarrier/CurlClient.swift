import CCurl
import HoldfastOnline

/// A client of services by HTTP/1.1 or HTTP/2 over TLS 1.3, with libcurl.
///
/// It follows no redirect, uses no proxy, cookie or stored password, and checks the service's certificate and name. Where a service
/// has pins, its own key or that of an authority in the chain that was verified must have one of them. Connections are reused. Only
/// one thread uses it.
@safe
package struct CurlClient: ~Copyable {
  private let handle: UnsafeMutableRawPointer
  private let authorities: TrustedAuthorities
  private let headers: UnsafeMutablePointer<curl_slist>?

  /// The longest time for a connection with its TLS handshake, in milliseconds.
  private static let connectMilliseconds = 2000

  /// Creates a client; nil if libcurl fails.
  ///
  /// - Parameter authorities: the certificate authorities that count.
  package init?(authorities: TrustedAuthorities) {
    guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, let handle = unsafe curl_easy_init() else {
      return nil
    }
    var headers: UnsafeMutablePointer<curl_slist>?
    for header in [
      "Content-Type: application/json", "Accept: application/json, application/jwt, application/problem+json",
      "Expect:",
    ] {
      unsafe headers = curl_slist_append(headers, header)
    }
    unsafe (self.handle, self.headers) = (handle, headers)
    self.authorities = authorities
  }

  deinit {
    unsafe curl_easy_cleanup(handle)
    unsafe curl_slist_free_all(headers)
  }

  /// Sends a request; see ``ExchangeEnvironment/send(_:to:withinMilliseconds:)``.
  package mutating func send(
    _ request: HTTPRequest, to service: PinnedService, withinMilliseconds milliseconds: UInt64
  ) throws(CarrierFailure.Kind) -> HTTPAnswer {
    guard isSet(request, service, Int(clamping: milliseconds)) else { throw .fault }
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: request.answerByteLimit)
    defer { unsafe bytes.deallocate() }
    var answer = unsafe holdfast_curl_answer(bytes: bytes, count: 0, capacity: request.answerByteLimit)
    var (code, trust) = unsafe (CURLE_FAILED_INIT, holdfast_curl_trust())
    unsafe withUnsafeMutablePointer(to: &answer) { answer in
      let pins = service.pins.flatMap(\.digest)
      unsafe pins.withUnsafeBufferPointer { pins in
        unsafe authorities.added.withOptionalCString { added in
          unsafe trust.pins = pins.baseAddress
          unsafe trust.pin_count = pins.count / 32
          unsafe trust.more_authorities = added
          code = unsafe perform(answer, &trust)
        }
      }
    }
    guard code == CURLE_OK else {
      if unsafe trust.has_wrong_pin != 0 { throw .wrongPin }
      if unsafe trust.has_bad_authorities != 0 { throw .badAuthorities }
      throw failure(code)
    }
    let retryAfter = unsafe holdfast_curl_retry_after(handle)
    let contentType = unsafe holdfast_curl_content_type(handle).map { unsafe String(cString: $0) }
    return HTTPAnswer(
      status: UInt64(clamping: unsafe holdfast_curl_number(handle, CURLINFO_RESPONSE_CODE)),
      contentType: contentType ?? "", retryAfterSeconds: retryAfter > 0 ? UInt64(retryAfter) : nil,
      body: unsafe Array(UnsafeBufferPointer(start: answer.bytes, count: answer.count)))
  }

  /// Carries the request out. Only here does libcurl use the two pointers.
  private func perform(
    _ answer: UnsafeMutablePointer<holdfast_curl_answer>, _ trust: UnsafeMutablePointer<holdfast_curl_trust>
  ) -> CURLcode {
    var code = unsafe holdfast_curl_set_answer(handle, answer)
    // Without it, libcurl has another library for TLS, with which pins cannot be checked: then nothing is sent.
    if code == CURLE_OK { code = unsafe holdfast_curl_set_trust(handle, trust) }
    return code == CURLE_OK ? unsafe curl_easy_perform(handle) : code
  }

  /// Sets all options for a request, and returns whether libcurl has them.
  private func isSet(_ request: HTTPRequest, _ service: PinnedService, _ milliseconds: Int) -> Bool {
    unsafe curl_easy_reset(handle)
    let scheme = service.address.isEncrypted ? "https" : "http"
    var texts: [(CURLoption, String?)] = [
      (CURLOPT_URL, service.address.description + request.path), (CURLOPT_PROTOCOLS_STR, scheme),
      (CURLOPT_PROXY, ""), (CURLOPT_USERAGENT, "holdfast-carrier"),
    ]
    if let only = authorities.only { texts += [(CURLOPT_CAINFO, only), (CURLOPT_CAPATH, nil)] }
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
      (CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_3), (CURLOPT_CONNECTTIMEOUT_MS, Self.connectMilliseconds),
      (CURLOPT_TIMEOUT_MS, milliseconds), (CURLOPT_HTTP09_ALLOWED, 0),
    ]
    return texts.allSatisfy { option, text in unsafe holdfast_curl_set_text(handle, option, text) == CURLE_OK }
      && numbers.allSatisfy { option, value in unsafe holdfast_curl_set_number(handle, option, value) == CURLE_OK }
      && (unsafe holdfast_curl_set_headers(handle, headers)) == CURLE_OK
      && (request.body.map { body in
        unsafe body.withUnsafeBytes { bytes in
          unsafe holdfast_curl_set_body(handle, bytes.baseAddress, bytes.count) == CURLE_OK
        }
      } ?? true)
  }

  /// Source: libcurl-errors(3).
  private func failure(_ code: CURLcode) -> CarrierFailure.Kind {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST: .noName
    case CURLE_OPERATION_TIMEDOUT: .timedOut
    case CURLE_SSL_CONNECT_ERROR: .noTLS
    case CURLE_SSL_CACERT_BADFILE: .badAuthorities
    case CURLE_PEER_FAILED_VERIFICATION: certificateFailure
    // Only the function that takes the body fails to write.
    case CURLE_WRITE_ERROR: .tooLongAnswer
    // libcurl has no other number for a header that is too long.
    case CURLE_OUT_OF_MEMORY: .tooLongAnswer
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_HTTP2_STREAM,
      CURLE_BAD_CONTENT_ENCODING:
      .malformedAnswer
    case CURLE_COULDNT_CONNECT, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE: .noConnection
    case CURLE_FAILED_INIT: .fault
    default: .noConnection
    }
  }

  /// Source: the X509_V_ERR numbers of X509_STORE_CTX_get_error(3). libcurl compares the names before it asks for the number, which
  /// is then 1.
  private var certificateFailure: CarrierFailure.Kind {
    switch unsafe holdfast_curl_number(handle, CURLINFO_SSL_VERIFYRESULT) {
    case 0, 1, 62, 64: .certificateOfAnotherName
    case 9, 10: .expiredCertificate
    default: .untrustedCertificate
    }
  }
}

extension String? {
  /// Calls `body` with the text as a C string; NULL for nil.
  fileprivate func withOptionalCString(_ body: (UnsafePointer<CChar>?) -> Void) {
    guard let self else { return body(nil) }
    unsafe self.withCString { unsafe body($0) }
  }
}
