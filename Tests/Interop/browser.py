"""A headless Chromium, and what it finds on pages: contrast, focus and widths."""

import contextlib
import shutil

import pytest

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service as Driver
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"


@contextlib.contextmanager
def chromium(scripts=True):
    """Starts a browser. Without scripts, its preferences permit none to pages."""
    if webdriver is None or not shutil.which(CHROMIUM) or not shutil.which(DRIVER):
        pytest.skip("there is no Chromium: the packages chromium, chromium-driver and python3-selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "force-device-scale-factor=1"):
        options.add_argument(f"--{word}")
    options.add_argument("--window-size=1280,900")
    options.set_capability("acceptInsecureCerts", True)
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    driver = webdriver.Chrome(service=Driver(DRIVER), options=options)
    try:
        driver.set_page_load_timeout(60)
        yield driver
    finally:
        driver.quit()


def wait_for_heading(driver, text):
    """Waits until the browser shows the page with this heading. An element may go with its page while it is read."""
    headings = lambda driver: [one.text for one in driver.find_elements("css selector", "h1")]
    WebDriverWait(driver, 60, ignored_exceptions=[WebDriverException]).until(
        lambda driver: headings(driver) == [text], f"the page does not become {text}"
    )


def set_scheme(driver, scheme):
    """Prefers dark or light."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def set_width(driver, width, height=800):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


# The contrast of each text, and of each border of a field, with what is behind it (WCAG 2.2, 1.4.3 and 1.4.11).
CONTRAST = """
const channel = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const parse = text => { const n = (text.match(/[0-9.]+/g) || []).map(Number); return n.length === 3 ? [...n, 1] : n; };
const behind = element => {
  for (let e = element; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length && c[3] === 1) return c;
    if (c.length && c[3] > 0) throw new Error('a translucent background');
  }
  return [255, 255, 255, 1];
};
const seen = e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true });
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), e = walker.currentNode.parentElement;
  if (!text || !seen(e) || e.closest('svg, .hidden, option')) continue;
  const style = getComputedStyle(e), size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
  found.push([text.slice(0, 40), ratio(parse(style.color), behind(e)), large ? 3 : 4.5]);
}
for (const e of document.querySelectorAll('input:not([type=hidden]):not([type=checkbox]), select, textarea')) {
  if (!seen(e)) continue;
  const style = getComputedStyle(e);
  found.push([e.name, ratio(parse(style.color), behind(e)), 4.5]);
  found.push([e.name + ' border', ratio(parse(style.borderTopColor), behind(e.parentElement)), 3]);
}
for (const e of document.querySelectorAll('rect[class^=series]')) {
  found.push([e.getAttribute('class'), ratio(parse(getComputedStyle(e).fill), behind(e.closest('div, span'))), 3]);
}
for (const e of document.querySelectorAll('td[data-label]')) {
  const style = getComputedStyle(e, '::before');
  if (style.content !== 'none' && seen(e)) found.push(['label ' + e.dataset.label, ratio(parse(style.color), behind(e)), 4.5]);
}
return found;
"""

# What the keyboard has to reach, in the order of the document.
REACHABLE = """
const seen = e => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')].filter(seen);
"""

OUTLINE = """
const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
return [style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, box.width > 0 && box.height > 0];
"""
