#if Service
import Mustache

/// The pages of the console, whose values are all escaped.
struct Templates: Sendable {
  private let library: MustacheLibrary

  init() throws {
    MustacheContentTypes.register(ScalarEscaping(), named: "CONSOLE")
    var library = MustacheLibrary()
    for (name, text) in Self.texts {
      // Before anything else: without it, the library's own escaping would apply.
      try library.register("{{%CONTENT_TYPE:CONSOLE}}" + text, named: name)
    }
    self.library = library
  }

  /// Renders a page.
  func render(_ page: Any, _ name: String) -> String { library.render(page, withTemplate: name) ?? "" }
}

/// The escaping of text and of attributes in double quotes, by Unicode scalars.
///
/// The library's own one goes by characters: it leaves a quotation mark as it is if a combining mark follows, and a value could
/// end its attribute.
///
/// Source: HTML Living Standard §13.3.
private struct ScalarEscaping: MustacheContentType {
  func escapeText(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      // Changes of direction would let a text rearrange what stands around it.
      case "\u{200e}"..."\u{200f}", "\u{202a}"..."\u{202e}", "\u{2066}"..."\u{2069}": escaped += "\u{fffd}"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}

extension Templates {
  private static let texts: KeyValuePairs<String, String> = [
    "head": """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <title>{{frame.title}} – Holdfast</title>
    <link rel="stylesheet" href="{{frame.stylesheet}}">
    <link rel="icon" type="image/svg+xml" href="{{frame.icon}}">
    </head>
    <body>
    <a class="skip" href="#content">Skip to the content</a>
    <header class="bar">
    <a class="brand" href="{{frame.root}}">Holdfast</a>
    {{#frame.caller}}
    <form class="account" method="post" action="{{frame.root}}/sign-out">
    <input type="hidden" name="form_token" value="{{frame.formToken}}">
    <span class="who"><span class="quiet">signed in as</span> {{frame.caller}}</span>
    <button class="plain">Sign out</button>
    </form>
    {{/frame.caller}}
    </header>
    <div class="layout">
    {{#frame.caller}}
    <nav aria-label="Main">
    <details class="menu">
    <summary>Menu</summary>
    <ul>
    {{#frame.menu}}
    <li><a href="{{address}}"{{#isCurrent}} aria-current="page"{{/isCurrent}}>{{title}}</a></li>
    {{/frame.menu}}
    </ul>
    </details>
    </nav>
    {{/frame.caller}}
    <main id="content" tabindex="-1">
    <h1>{{frame.title}}</h1>
    {{#frame.notice}}<p class="note good" role="status">{{.}}</p>{{/frame.notice}}
    {{#frame.fault}}<p class="note bad" role="alert">{{.}}</p>{{/frame.fault}}

    """,
    "foot": """
    </main>
    </div>
    </body>
    </html>

    """,
    "value": """
    {{#.isNone}}<span class="none">none</span>{{/.isNone}}\
    {{^.isNone}}\
    {{#.badge}}<span class="badge {{.}}">{{text}}</span>{{/.badge}}\
    {{^.badge}}\
    {{#.pairs}}<span class="pair"><span class="quiet">{{.key}}</span> {{.text}}</span> {{/.pairs}}\
    {{^.pairs}}\
    {{#.machineTime}}<time datetime="{{.}}">{{text}}</time>{{/.machineTime}}\
    {{^.machineTime}}\
    {{#.link}}<a href="{{.}}"{{#isCode}} class="code"{{/isCode}}>{{text}}</a>{{/.link}}\
    {{^.link}}<span{{#.isCode}} class="code"{{/.isCode}}>{{.text}}</span>{{/.link}}\
    {{/.machineTime}}\
    {{/.pairs}}\
    {{/.badge}}\
    {{/.isNone}}
    """,
    "table": """
    {{#.isEmpty}}<p class="empty">Nothing here.</p>{{/.isEmpty}}
    {{^.isEmpty}}
    <table class="cards" role="table">
    <caption class="hidden">{{.caption}}</caption>
    <thead role="rowgroup"><tr role="row">{{#columns}}<th scope="col" role="columnheader">{{.}}</th>{{/columns}}</tr></thead>
    <tbody role="rowgroup">
    {{#rows}}
    <tr role="row">{{#cells}}<td role="cell" data-label="{{.label}}">{{>value}}</td>{{/cells}}</tr>
    {{/rows}}
    </tbody>
    </table>
    {{/.isEmpty}}

    """,
    "members": """
    <dl class="members">
    {{#cells}}
    <div><dt>{{.label}}</dt><dd>{{>value}}</dd></div>
    {{/cells}}
    </dl>

    """,
    "field": """
    {{#.isGroup}}
    <fieldset class="field" aria-describedby="{{.name}}-hint">
    <legend>{{.label}}</legend>
    {{#options}}
    <label class="check"><input type="checkbox" name="{{name}}" value="{{.text}}"{{#.isSelected}} checked{{/.isSelected}}> \
    {{.label}}</label>
    {{/options}}
    <p class="hint" id="{{.name}}-hint">{{.hint}}</p>
    </fieldset>
    {{/.isGroup}}
    {{^.isGroup}}
    <div class="field">
    <label for="{{.name}}">{{.label}}</label>
    {{#.isChoice}}
    <select id="{{.name}}" name="{{.name}}" aria-describedby="{{.name}}-hint">
    {{#options}}<option value="{{.text}}"{{#.isSelected}} selected{{/.isSelected}}>{{.label}}</option>{{/options}}
    </select>
    {{/.isChoice}}
    {{#.isArea}}
    <textarea id="{{.name}}" name="{{.name}}" rows="14" spellcheck="false" aria-describedby="{{.name}}-hint"\
    {{#.isRequired}} required{{/.isRequired}}>
    {{.value}}</textarea>
    {{/.isArea}}
    {{^.isChoice}}{{^.isArea}}
    <input id="{{.name}}" name="{{.name}}" type="{{.type}}" value="{{.value}}" maxlength="{{.length}}" autocomplete="off"\
     spellcheck="false" aria-describedby="{{.name}}-hint"{{#.isRequired}} required{{/.isRequired}}>
    {{/.isArea}}{{/.isChoice}}
    <p class="hint" id="{{.name}}-hint">{{.hint}}</p>
    </div>
    {{/.isGroup}}

    """,
    "plot": """
    <figure class="plot" aria-labelledby="{{.id}}-title">
    <h2 id="{{.id}}-title">{{.title}}</h2>
    <p class="quiet">{{.summary}}</p>
    {{^.isEmpty}}
    <div class="drawing">
    <span class="top" aria-hidden="true">{{.top}}</span>
    <svg viewBox="0 0 {{.width}} 100" preserveAspectRatio="none" role="img" aria-labelledby="{{.id}}-title">
    <line x1="0" x2="{{.width}}" y1="0.5" y2="0.5"/><line x1="0" x2="{{.width}}" y1="50" y2="50"/>
    <line x1="0" x2="{{.width}}" y1="99.5" y2="99.5"/>
    {{#bars}}<rect class="series{{.series}}" x="{{.x}}" y="{{.y}}" width="0.8" height="{{.height}}">\
    <title>{{.label}}</title></rect>{{/bars}}
    </svg>
    <span class="days" aria-hidden="true"><span>{{.first}}</span><span>{{.last}}</span></span>
    </div>
    {{#legend}}<span class="legend"><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="series{{.series}}" width="10"\
     height="10" rx="2"/></svg> {{.label}} <span class="quiet">{{.count}}</span></span> {{/legend}}
    <details>
    <summary>Numbers</summary>
    <table id="{{.id}}-numbers">
    <caption class="hidden">{{.title}}</caption>
    <thead><tr><th scope="col">Day</th><th scope="col">{{.header}}</th><th scope="col">Count</th></tr></thead>
    <tbody>
    {{#rows}}<tr><td>{{.day}}</td><td>{{.series}}</td><td class="number">{{.count}}</td></tr>{{/rows}}
    </tbody>
    </table>
    </details>
    {{/.isEmpty}}
    </figure>

    """,
    "overview": """
    {{>head}}
    {{^isReadable}}<p>Your token does not permit reading records.</p>{{/isReadable}}
    {{#isReadable}}
    <section aria-labelledby="waiting">
    <h2 id="waiting">Requests that wait for a decision</h2>
    {{#waiting}}{{>table}}{{/waiting}}
    </section>
    <div class="plots">
    {{#plots}}{{>plot}}{{/plots}}
    </div>
    <section aria-labelledby="changes">
    <h2 id="changes">Latest changes</h2>
    {{#changes}}{{>table}}{{/changes}}
    </section>
    {{/isReadable}}
    {{>foot}}
    """,
    "list": """
    {{>head}}
    <p class="actions">{{#links}}<a class="button" href="{{.address}}">{{.title}}</a> {{/links}}</p>
    <form class="filters" method="get" action="{{address}}" aria-label="Filter">
    {{#fields}}{{>field}}{{/fields}}
    <div class="send"><button class="plain">Filter</button></div>
    </form>
    {{#isTimeline}}
    {{^days}}<p class="empty">Nothing here.</p>{{/days}}
    {{#days}}
    <section>
    <h2>{{.day}}</h2>
    <ol class="timeline">
    {{#entries}}
    <li><time datetime="{{.machineTime}}">{{.clock}}</time> <strong>{{.event}}</strong> \
    {{#cells}}<span class="pair"><span class="quiet">{{.label}}</span> {{>value}}</span> {{/cells}}</li>
    {{/entries}}
    </ol>
    </section>
    {{/days}}
    {{/isTimeline}}
    {{^isTimeline}}{{#table}}{{>table}}{{/table}}{{/isTimeline}}
    <p class="paging">
    {{#first}}<a href="{{.}}">First page</a>{{/first}}
    {{#next}}<a rel="next" href="{{.}}">Next page</a>{{/next}}
    </p>
    {{>foot}}
    """,
    "record": """
    {{>head}}
    {{#members}}{{>members}}{{/members}}
    <p class="actions">{{#related}}<a class="button" href="{{.address}}">{{.title}}</a> {{/related}}</p>
    {{#hasActions}}<h2>Change</h2>{{/hasActions}}
    <p class="actions">{{#actions}}<a class="button{{#.isDestructive}} danger{{/.isDestructive}}" href="{{.address}}">\
    {{.title}}</a> {{/actions}}</p>
    {{>foot}}
    """,
    "form": """
    {{>head}}
    <p>{{summary}}</p>
    {{#members}}{{>members}}{{/members}}
    <form class="sheet" method="post" action="{{address}}">
    <input type="hidden" name="form_token" value="{{frame.formToken}}">
    {{#fields}}{{>field}}{{/fields}}
    <div class="send">
    <button{{#isDestructive}} class="danger"{{/isDestructive}}>{{submit}}</button>
    <a class="button" href="{{cancel}}">Cancel</a>
    </div>
    </form>
    {{>foot}}
    """,
    "secret": """
    {{>head}}
    <p class="note wait">{{summary}}</p>
    <p class="secret"><span class="quiet">{{label}}</span> <output>{{secret}}</output></p>
    {{#picture}}
    <svg class="picture" viewBox="0 0 {{.side}} {{.side}}" role="img" aria-label="QR code of the invitation"\
     shape-rendering="crispEdges"><rect width="{{.side}}" height="{{.side}}" fill="#fff"/><path d="{{.path}}" fill="#000"/></svg>
    {{/picture}}
    {{#members}}{{>members}}{{/members}}
    <p class="actions">{{#record}}<a class="button" href="{{.address}}">{{.title}}</a>{{/record}}</p>
    {{>foot}}
    """,
    "statistics": """
    {{>head}}
    <ul class="spans" aria-label="Time">
    {{#spans}}<li><a class="button" href="{{.address}}"{{#.isCurrent}} aria-current="page"{{/.isCurrent}}>{{.title}}</a></li>
    {{/spans}}
    </ul>
    {{#plots}}{{>plot}}{{/plots}}
    {{>foot}}
    """,
    "fault": """
    {{>head}}
    <p>{{detail}}</p>
    <p class="quiet">In the service's log, this request is <span class="code">{{requestID}}</span>.</p>
    <p class="actions"><a class="button" href="{{home}}">Overview</a></p>
    {{>foot}}
    """,
    "sign-in": """
    {{>head}}
    <form class="sheet" method="post" action="{{address}}">
    <div class="field">
    <label for="token">Operator's token</label>
    <input id="token" name="token" type="password" maxlength="128" autocomplete="current-password" spellcheck="false"\
     aria-describedby="token-hint" required autofocus>
    <p class="hint" id="token-hint">holdfast-service operator add prints it. The browser does not keep it.</p>
    </div>
    <div class="send"><button>Sign in</button></div>
    </form>
    {{>foot}}
    """,
  ]
}
#endif
