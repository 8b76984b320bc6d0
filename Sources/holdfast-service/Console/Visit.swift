#if Service
import HTTPTypes
import HoldfastFormats
import HoldfastService
import Hummingbird

/// A request of a signed-in operator.
struct Visit: Sendable {
  let request: Request
  let context: ServiceRequestContext
  let session: OperatorSession
  /// The parameters of the query; nil if they are malformed.
  let query: FormData?

  var caller: Operator { session.caller }
}

/// The rules by which a browser proves that a request comes from the console and its operator.
enum ConsoleSecurity {
  /// The `__Host-` prefix binds the cookie to this host, `/` and HTTPS; browsers treat loopback as HTTPS, except Safari.
  ///
  /// Source: RFC 6265bis §4.1.3.2.
  private static let cookie = "__Host-holdfast-session"
  private static let attributes = "; Path=/; Secure; HttpOnly; SameSite=Strict"

  /// The headers of every page. Nothing is loaded from elsewhere, no script runs, no other page frames it, and nothing is stored.
  static let headers: [(String, String)] = [
    (
      "Content-Security-Policy",
      "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    ("X-Frame-Options", "DENY"), ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    // With no-referrer, browsers would send the origin null with forms.
    ("Referrer-Policy", "same-origin"), ("Cache-Control", "no-store"),
  ]

  /// Returns the session's secret in the cookie; nil if there is none.
  static func secret(in request: Request) -> String? {
    for pair in (request.headers[.cookie] ?? "").split(separator: ";") {
      let halves = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
      if halves.count == 2, halves[0] == cookie { return String(halves[1]) }
    }
    return nil
  }

  /// The header that keeps a session, or ends it.
  static func setCookie(_ secret: String?, seconds: UInt64) -> String {
    "\(cookie)=\(secret ?? "")\(attributes); Max-Age=\(secret == nil ? 0 : seconds)"
  }

  /// Checks that a form was sent by a page of this host: by `Sec-Fetch-Site` where the browser sends it, and by `Origin`.
  /// A request with neither comes from no present browser, and is refused.
  static func checkOrigin(_ request: Request) throws(Problem) {
    let site = request.headers[HTTPField.Name("Sec-Fetch-Site")!]
    let origin = request.headers[.origin]
    let host = request.head.authority ?? ""
    guard site != nil || origin != nil, site == nil || site == "same-origin",
      origin == nil || origin == "https://\(host)" || origin == "http://\(host)"
    else { throw .foreignForm }
  }
}

extension Problem {
  static let foreignForm = Problem(
    status: .forbidden, type: "foreign-form", title: "This form was not sent by a page of this console.",
    detail: "Nothing was changed. Open the page again, and send the form from there.")
}
#endif
