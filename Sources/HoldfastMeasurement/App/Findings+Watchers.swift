import CHost

extension Findings {
  /// Where Frida's server listens unless told otherwise.
  private static let agentPort: UInt16 = 27042

  /// Looks at threads, mapped files, listening sockets, and at whether the process is as closed as it asked to be.
  init(watchersIn map: MemoryMap, files: HostFiles) throws(MeasurementError) {
    for thread in try ThreadStatus.all(files) {
      if thread.isTraced { note(.tracer) }
      // A filter can answer for the kernel. Those of the service manager are there at the baseline as well, as many of them.
      if thread.filterCount > 0 { note(.seccompFilter, count: thread.filterCount) }
      if Self.isAgentThread(thread.name[...]) { note(.agentThread, details: thread.name) }
    }
    for mapping in map.mappings where Self.isAgentFile(mapping.name[...]) { note(.agentMapping) }
    if files.isLive && holdfast_is_still_dumpable() == 1 { note(.dumpable) }
    if try ListeningSockets.contain(port: Self.agentPort, files) { note(.agentListener) }
  }

  /// Names that Frida gives its threads. `gmain` and `gdbus` are left out: every GLib program has them.
  private static func isAgentThread(_ name: ArraySlice<UInt8>) -> Bool {
    name.equals("gum-js-loop") || name.equals("linjector") || name.contains("frida")
  }

  private static func isAgentFile(_ name: ArraySlice<UInt8>) -> Bool {
    name.contains("frida-agent") || name.contains("frida-gadget") || name.contains("libgadget")
      || name.contains("linjector")
  }
}
