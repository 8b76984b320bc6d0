#if Service
import HTTPTypes
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import Hummingbird
import NIOCore

/// The files of the console that are no pages: the style sheet and the icon. Their addresses change with their content.
enum Stylesheet {
  static let path = ConsoleRoutes.root + "/console.css"
  static let iconPath = ConsoleRoutes.root + "/icon.svg"
  static let address = "\(path)?\(tag(text))"
  static let iconAddress = "\(iconPath)?\(tag(icon))"

  /// Returns a file, or 304 to a browser that has it.
  ///
  /// Source: RFC 9110 §13.1.2.
  static func response(_ request: Request, _ text: String, _ type: String) -> Response {
    let tag = "\"\(tag(text))\""
    let headers: HTTPFields = [
      .contentType: "\(type); charset=utf-8", .eTag: tag, .cacheControl: "public, max-age=86400",
    ]
    guard request.headers[.ifNoneMatch] != tag else { return Response(status: .notModified, headers: headers) }
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }

  private static func tag(_ text: String) -> String {
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      var hash = cryptography.sha256()
      hash.append(Array(text.utf8).span)
      let digest: Digest = try hash.finish()
      return String(hexadecimal(digest).prefix(16))
    } catch { return "0" }
  }

  static let icon = """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5f73"/>\
    <path d="M10 8h3.5v6.5h5V8H22v16h-3.500v-6.500h-5V24H10z" fill="#fff"/></svg>
    """

  static let text = """
    :root {
      color-scheme: light dark;
      --ground: #f4f6f7; --sheet: #ffffff; --line: #d3dade; --edge: #76838c;
      --text: #182026; --quiet: #505c66;
      --accent: #0b5f73; --on-accent: #ffffff; --tint: #e3f0f3;
      --good: #17653a; --good-tint: #e1f2e7; --wait: #734c00; --wait-tint: #fbf0d6;
      --bad: #a1231a; --bad-tint: #fbe6e4; --on-bad: #ffffff; --over: #505c66; --over-tint: #e9edef;
      --series0: #0b6e85; --series1: #b4561a; --series2: #6a4fb0; --series3: #2f7d46; --series4: #a83a6b; --series5: #66717a;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --ground: #11161a; --sheet: #1a2126; --line: #323d45; --edge: #7d8b95;
        --text: #e5eaed; --quiet: #a4b1ba;
        --accent: #74c6d8; --on-accent: #06222a; --tint: #1d3a43;
        --good: #86d6a2; --good-tint: #17352a; --wait: #ecc06c; --wait-tint: #3b2f14;
        --bad: #ffa197; --bad-tint: #43211e; --on-bad: #2c0805; --over: #b4c0c8; --over-tint: #2a343b;
        --series0: #5bbcd0; --series1: #f0a06a; --series2: #b39cf0; --series3: #7fcf95; --series4: #ec8fb8; --series5: #9aa7b0;
      }
    }
    * { box-sizing: border-box; }
    html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
    body { margin: 0; background: var(--ground); color: var(--text);
      font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif; }
    h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1.25rem; font-weight: 650; overflow-wrap: anywhere; }
    h2 { font-size: 1.0625rem; line-height: 1.35; margin: 0 0 .75rem; font-weight: 650; }
    p { margin: 0 0 1rem; max-width: 44rem; }
    a { color: var(--accent); text-underline-offset: .15em; }
    .quiet, .hint, .none { color: var(--quiet); }
    .none { font-style: italic; }
    .code { font-family: ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace; font-size: .9em; overflow-wrap: anywhere; }
    .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
    :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
    main:focus { outline: none; }
    .skip { position: absolute; left: 1rem; top: -5rem; z-index: 2; padding: .5rem 1rem; background: var(--accent);
      color: var(--on-accent); border-radius: 0 0 6px 6px; }
    .skip:focus { top: 0; }

    .bar { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1rem; padding: .625rem 1rem; background: var(--sheet);
      border-bottom: 1px solid var(--line); }
    .brand { font-weight: 700; letter-spacing: .01em; color: var(--text); text-decoration: none; padding: .25rem 0; }
    .account { display: flex; align-items: center; gap: .75rem; margin-left: auto; min-width: 0; }
    .who { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .layout { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; padding: 1rem; max-width: 84rem; margin: 0 auto; }
    main { min-width: 0; }
    section, figure { margin: 0 0 2rem; }

    .menu summary { cursor: pointer; padding: .625rem 1rem; background: var(--sheet); border: 1px solid var(--line);
      border-radius: 8px; font-weight: 600; }
    .menu ul { list-style: none; margin: .5rem 0 0; padding: .25rem; background: var(--sheet); border: 1px solid var(--line);
      border-radius: 8px; display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); }
    .menu a { display: block; padding: .5rem .75rem; border-radius: 6px; color: var(--text); text-decoration: none; }
    .menu a:hover { background: var(--tint); }
    .menu a[aria-current] { background: var(--tint); color: var(--accent); font-weight: 600; }

    button, .button { display: inline-flex; align-items: center; justify-content: center; font: inherit; font-weight: 600; line-height: 1.25; padding: .5625rem 1rem;
      min-height: 2.625rem; border-radius: 8px; border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent);
      cursor: pointer; text-decoration: none; }
    .button, .plain { background: var(--sheet); color: var(--accent); border-color: var(--edge); }
    button:hover, .button:hover { filter: brightness(1.08); text-decoration: underline; }
    .danger { border-color: var(--bad); color: var(--bad); }
    button.danger { background: var(--bad); color: var(--on-bad); }
    .button[aria-current] { background: var(--tint); border-color: var(--accent); }
    .actions, .spans { display: flex; flex-wrap: wrap; gap: .625rem; margin: 0 0 1.5rem; padding: 0; list-style: none; max-width: none; }
    .actions:empty, .paging:empty { display: none; }
    .paging { display: flex; gap: 1.5rem; margin-top: 1rem; }

    .note { padding: .75rem 1rem; border-radius: 8px; border-left: 4px solid; max-width: none; overflow-wrap: anywhere; }
    .good { color: var(--good); background: var(--good-tint); }
    .wait { color: var(--wait); background: var(--wait-tint); }
    .bad { color: var(--bad); background: var(--bad-tint); }
    .over { color: var(--over); background: var(--over-tint); }
    .badge { display: inline-block; padding: .0625rem .5625rem; border-radius: 999px; font-size: .875rem; font-weight: 600; }
    .empty { padding: 1.5rem 1rem; border: 1px dashed var(--line); border-radius: 8px; color: var(--quiet); max-width: none; }
    .pair { display: inline-block; margin-right: .75rem; overflow-wrap: anywhere; }

    table { border-collapse: separate; border-spacing: 0; width: 100%; background: var(--sheet); border: 1px solid var(--line);
      border-radius: 10px; }
    th, td { text-align: left; vertical-align: top; padding: .5625rem .75rem; border-top: 1px solid var(--line); font-size: .9375rem; }
    thead th { border-top: 0; font-size: .8125rem; font-weight: 600; color: var(--quiet); white-space: nowrap; }
    td { overflow-wrap: anywhere; }
    td .badge, td .code { white-space: nowrap; }
    .number { text-align: right; font-variant-numeric: tabular-nums; }
    time { font-variant-numeric: tabular-nums; }

    .members { margin: 0 0 1.5rem; background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; }
    .members > div { display: grid; grid-template-columns: minmax(0, 1fr); padding: .5625rem 1rem; }
    .members > div + div { border-top: 1px solid var(--line); }
    dt { color: var(--quiet); }
    dd { margin: 0; overflow-wrap: anywhere; }

    .sheet { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem 1rem; max-width: 40rem; }
    .field { border: 0; padding: 0; margin: 0 0 1.25rem; min-width: 0; }
    .field > label, legend { display: block; font-weight: 600; margin-bottom: .25rem; padding: 0; }
    .field > .check { display: flex; align-items: center; gap: .5rem; margin: 0; padding: .375rem 0; font-weight: 400; width: fit-content; }
    input:not([type=checkbox]), select, textarea { font: inherit; width: 100%; min-height: 2.625rem; padding: .5rem .625rem;
      color: var(--text); background: var(--sheet); border: 1px solid var(--edge); border-radius: 8px; }
    textarea { font-family: ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace; font-size: .9rem; resize: vertical; }
    input[type=checkbox] { margin: 0; width: 1.25rem; height: 1.25rem; accent-color: var(--accent); }
    .hint { font-size: .9rem; margin: .375rem 0 0; }
    .send { display: flex; flex-wrap: wrap; gap: .625rem; }
    .filters { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .75rem 1rem; align-items: start;
      margin: 0 0 1.5rem; }
    .filters .field { margin: 0; }
    .filters .send { padding-top: 1.75rem; }
    .filters:not(:has(.field)) { display: none; }

    .plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; margin-bottom: 2rem; }
    .plot { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; min-width: 0; }
    .plots .plot { margin: 0; }
    .plot h2 { margin-bottom: .25rem; }
    .drawing { position: relative; padding-top: 1.5rem; margin-bottom: .75rem; }
    .drawing > svg { display: block; width: 100%; height: 9rem; }
    .drawing line { stroke: var(--line); stroke-width: 1px; vector-effect: non-scaling-stroke; }
    .top, .days { font-size: .875rem; color: var(--quiet); font-variant-numeric: tabular-nums; }
    .top { position: absolute; top: 0; left: 0; }
    .days { display: flex; justify-content: space-between; margin-top: .25rem; }
    .series0 { fill: var(--series0); } .series1 { fill: var(--series1); } .series2 { fill: var(--series2); }
    .series3 { fill: var(--series3); } .series4 { fill: var(--series4); } .series5 { fill: var(--series5); }
    .legend { display: inline-flex; align-items: center; gap: .375rem; margin: 0 1rem .25rem 0; font-size: .9375rem; }
    .legend svg { width: .875rem; height: .875rem; flex: none; }
    .plot summary { cursor: pointer; color: var(--accent); padding: .5rem 0; width: fit-content; }
    .plot table { margin-top: .25rem; }

    .timeline { list-style: none; margin: 0; padding: 0 0 0 1rem; border-left: 2px solid var(--line); }
    .timeline li { position: relative; padding: 0 0 1rem .5rem; }
    .timeline li::before { content: ""; position: absolute; left: calc(-1rem - 6px); top: .5rem; width: 10px; height: 10px;
      border-radius: 50%; background: var(--accent); box-shadow: 0 0 0 3px var(--ground); }
    .timeline time { color: var(--quiet); margin-right: .5rem; }
    .timeline strong { margin-right: .75rem; }

    .secret output { display: block; font: 600 1.25rem/1.5 ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace;
      overflow-wrap: anywhere; user-select: all; }
    .picture { display: block; width: min(100%, 17rem); height: auto; margin: 0 0 1.5rem; border-radius: 8px; border: 1px solid var(--line); }

    @media (max-width: 47.99rem) {
      .who .quiet { display: none; }
      .filters .send { padding-top: 0; }
      table.cards, .cards tbody, .cards tr, .cards td { display: block; }
      .cards { background: none; border: 0; }
      .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
      .cards tr { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: .375rem 0; margin-bottom: .75rem; }
      .cards td { font-size: 1rem; display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: .75rem; padding: .3125rem 1rem; border: 0; }
      .cards td::before { content: attr(data-label); color: var(--quiet); }
      .cards td > * { justify-self: start; }
      .cards td:has(.none) { display: none; }
      .send button, .send .button { flex: 1 1 auto; text-align: center; }
    }
    @media (min-width: 48rem) {
      .members > div { grid-template-columns: 12rem minmax(0, 1fr); gap: 1rem; }
      .sheet { padding: 1.5rem; }
    }
    @media (min-width: 64rem) {
      .bar { padding: .625rem 1.5rem; }
      .layout { padding: 1.5rem; gap: 2rem; }
      .layout:has(nav) { grid-template-columns: 12rem minmax(0, 1fr); }
      @supports selector(::details-content) {
        .menu summary { display: none; }
        .menu::details-content { content-visibility: visible; display: block; height: auto; }
        .menu ul { display: block; margin: 0; padding: 0; background: none; border: 0; }
      }
    }
    @media (min-width: 80rem) {
      .cards td { min-width: 5.5rem; }
      td time { white-space: nowrap; }
    }
    @media (prefers-reduced-motion: no-preference) { .skip { transition: top .1s; } }
    @media (forced-colors: active) { .badge, .note { border: 1px solid; } }
    """
}
#endif
