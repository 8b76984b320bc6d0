/// All attacks on a device, in the order in which they are run.
///
/// Those that change what later ones see come last: a lockout, and floods. Those with wrong proofs come late, since a line is slow from
/// the tenth on.
extension Attack {
  package static let all: [Attack] =
    rounds + messages + requests + compatibility + proofs + tokens + issuers + users + strangers
}
