/// The issuer and user that a label names: `Issuer:user`, with spaces allowed after the colon, or the user alone.
///
/// Source: Google's Key URI format, "Label". `invalidName` for more than one colon.
struct AccountLabel {
  /// Nil without a colon.
  let issuer: String?
  let user: String

  init(_ label: String) throws(ImportFault) {
    let parts = label.split(separator: ":", omittingEmptySubsequences: false)
    switch parts.count {
    case 1:
      issuer = nil
      user = label
    case 2:
      issuer = String(parts[0])
      user = String(parts[1].drop { $0 == " " })
    default: throw .invalidName
    }
  }
}
