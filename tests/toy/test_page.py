"""The toy's page in a real browser, used by hand."""

import shutil
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hinge.toy.answers import SOLVERS, warm_up
from hinge.toy.server import ToyServer

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: browser)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no chromium on this computer", allow_module_level=True)

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    warm_up()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Page:
    """A page that is open, and what it complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_function("() => window.hingeToy && hingeToy.state.frames > 0", timeout=60_000)
        self.rest()

    def get(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {expression}")

    def rest(self) -> None:
        """Wait until no question is under way: nothing is drawn any more."""
        self.page.wait_for_timeout(150)
        before = -1
        while (now := self.get("hingeToy.state.frames")) != before:
            before = now
            self.page.wait_for_timeout(250)

    def spot(self, x: float, y: float) -> tuple[float, float]:
        box = self.page.locator(".stage canvas").bounding_box()
        return box["x"] + x * box["width"], box["y"] + (1 - y) * box["height"]

    def click(self, x: float, y: float) -> None:
        self.page.mouse.click(*self.spot(x, y))
        self.rest()

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()
        self.rest()

    def choose(self, what: str, value: str) -> None:
        self.page.select_option(f"select[aria-label={what}]", value)
        self.rest()

    def field(self) -> list[float]:
        return self.get("Array.from(hingeToy.state.answer.field)")


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    with ToyServer(0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        # The driver looks into the page by eval, which the page itself forbids.
        context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
        page = Page(context.new_page())
        page.address = server.address
        page.open(server.address)
        yield page
        assert page.complaints == []
        context.close()
        server.shutdown()


def test_points_by_mouse_change_the_boundary(page):
    page.button("clear")
    assert page.get("hingeToy.state.answer") is None
    for x in (0.2, 0.3):
        page.click(x, 0.5)
    page.page.keyboard.press("2")
    page.click(0.8, 0.5)
    assert page.get("hingeToy.scene.points.map(p => p[2])") == [0, 0, 1]
    assert page.page.locator(".status").inner_text() == "converged"
    before = page.field()
    page.page.mouse.move(*page.spot(0.8, 0.5))
    page.page.mouse.down()
    for step in range(1, 11):
        page.page.mouse.move(*page.spot(0.8 - 0.03 * step, 0.5 + 0.03 * step))
    page.page.mouse.up()
    page.rest()
    assert page.get("hingeToy.scene.points[2][0]") == pytest.approx(0.5, abs=0.01)
    assert page.field() != before
    page.button("erase")
    page.click(0.5, 0.8)
    assert page.get("hingeToy.scene.points.length") == 2


def test_a_slider_retrains(page):
    before = page.field()
    slider = page.page.locator("input[data-name=C]")
    box = slider.bounding_box()
    page.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + box["height"] / 2)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2, steps=8)
    page.page.mouse.up()
    page.rest()
    assert page.get("hingeToy.scene.C") > 1000
    assert page.field() != before


@pytest.mark.parametrize("solver", SOLVERS)
def test_step_mode(page, solver):
    page.choose("preset", "spiral")
    page.choose("solver", solver)
    seen = []
    for _ in range(4):
        page.button("step")
        seen.append(page.get("hingeToy.state.answer.pair"))
    assert all(seen), seen
    assert page.page.locator(".chart").is_visible()
    objectives = page.get("hingeToy.state.history.map(h => h.objective)")
    assert len(objectives) == 4
    assert objectives == sorted(objectives, reverse=True)
    page.button("back")
    assert page.get("hingeToy.state.answer.pair") == seen[2]
    assert page.page.locator(".status").inner_text() == "on its way"


def test_a_link_restores_the_picture(page, browser):
    page.choose("preset", "XOR")
    page.choose("kernel", "poly")
    page.page.wait_for_timeout(400)  # the address follows when things have come to rest
    link = page.page.url
    assert "#" in link
    other = Page(browser.new_page())
    other.open(link)
    drawn, restored = (shown.get("hingeToy.scene") for shown in (page, other))
    points, restored_points = drawn.pop("points"), restored.pop("points")
    assert drawn == restored
    assert drawn["kernel"] == "poly"
    assert len(restored_points) == 48
    np.testing.assert_allclose(restored_points, points, rtol=0, atol=5e-5)  # links keep four digits
    assert other.complaints == []


def test_a_link_that_is_damaged_says_so(page, browser):
    other = Page(browser.new_page())
    other.open(page.address + "#%%%")
    assert "no scene" in other.page.locator(".message").inner_text()
    assert other.get("hingeToy.scene.points.length") > 0


def test_keyboard_only(page):
    page.button("clear")
    page.page.locator(".stage canvas").focus()
    keys = page.page.keyboard
    keys.press("Enter")
    for _ in range(3):
        keys.press("Shift+ArrowRight")
    keys.press("2")
    keys.press("Enter")
    page.rest()
    assert page.get("hingeToy.scene.points") == [
        [pytest.approx(0.5), pytest.approx(0.5), 0], [pytest.approx(0.8), pytest.approx(0.5), 1],
    ]  # fmt: skip
    assert page.page.locator(".status").inner_text() == "converged"
    keys.press("Delete")
    page.rest()
    assert page.get("hingeToy.scene.points.length") == 1
    keys.press("u")
    page.rest()
    assert page.get("hingeToy.scene.points.length") == 2
    for _ in range(40):  # every control can be reached
        keys.press("Tab")
        if page.get("document.activeElement.dataset.name === 'C'"):
            break
    cost = page.get("hingeToy.scene.C")
    keys.press("ArrowRight")
    page.rest()
    assert page.get("hingeToy.scene.C") > cost


@pytest.mark.parametrize(
    "preset", ["two clouds", "XOR", "two moons", "spiral", "five classes", "a wave with noise", "a ring"]
)
def test_every_preset_converges(page, preset):
    page.choose("preset", preset)
    assert page.page.locator(".status").inner_text() == "converged"


def test_the_map(page):
    page.choose("preset", "XOR")
    page.page.get_by_role("button", name="draw the map").click()
    page.page.wait_for_function("() => hingeToy.state.map", timeout=60_000)
    box = page.page.locator(".map").bounding_box()
    page.page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.2 * box["height"])
    page.rest()
    assert page.get("hingeToy.state.preview.C") > 100
    page.page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.2 * box["height"])
    page.rest()
    assert page.get("hingeToy.scene.C") > 100


def test_what_is_copied_runs(page):
    page.choose("preset", "XOR")
    page.button("copy as Python")
    namespace: dict[str, Any] = {}
    exec(page.get("hingeToy.state.copied").replace("print(machine.report_)", ""), namespace)
    assert namespace["machine"].report_.converged
    page.button("copy as command")
    assert page.get("hingeToy.state.copied").startswith("hinge train -s 0 -t 2 -c 10 -g 10 ")


def test_a_phone_sees_everything_without_scrolling_sideways(page):
    page.page.set_viewport_size({"width": 400, "height": 800})
    page.rest()
    assert page.get("document.documentElement.scrollWidth") <= 400
