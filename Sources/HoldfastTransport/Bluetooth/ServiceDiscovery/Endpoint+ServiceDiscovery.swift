extension Endpoint {
  /// The endpoint with its port filled in: the peer is asked by SDP where the port was left open.
  ///
  /// - Throws: ``TransportError/refused`` where the peer has no such device, and what
  ///   ``ServiceDiscovery/query(_:adapter:timeoutMilliseconds:)`` throws.
  public func resolved(timeoutMilliseconds: Int) throws(TransportError) -> Endpoint {
    guard case .bluetooth(let peer, let port) = address, port.isOpen else { return self }
    let ports = try ServiceDiscovery.query(peer, adapter: adapter, timeoutMilliseconds: timeoutMilliseconds)
    guard let found = ports.first(where: { $0.open == port }) else { throw .refused }
    return Endpoint(address: .bluetooth(peer, found), adapter: adapter, security: security)
  }
}
