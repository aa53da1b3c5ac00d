/** Checks that a page is legible in Chromium. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { chromium, type Look, openBrowser } from './browser.js';

const looks: readonly Look[] = [
  { width: 1280, scheme: 'light' },
  { width: 1280, scheme: 'dark' },
  { width: 390, scheme: 'light' },
];

/** Texts in a drawing that leave it or overlap. */
const misplaced = `[...document.querySelectorAll('svg[aria-label]')].flatMap((drawing) => {
  const frame = drawing.getBoundingClientRect();
  const texts = [...drawing.querySelectorAll('text')]
    .filter((text) => text.textContent !== '')
    .map((text) => ({ content: text.textContent, box: text.getBoundingClientRect() }));
  const outside = texts.filter(({ box }) =>
    box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 3 || b.bottom <= a.top + 3;
  const touching = texts.filter((one, i) => texts.slice(i + 1).some((other) => !apart(one.box, other.box)));
  return [...outside, ...touching].map(({ content }) => drawing.getAttribute('aria-label') + ': ' + content);
})`;

/** Texts with a contrast below 4.5 to 1 (WCAG 2, AA). */
const faint = `(() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[0-9.]+/g).map(Number).map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const { backgroundColor } = getComputedStyle(element);
    return backgroundColor === 'rgba(0, 0, 0, 0)' ? behind(element.parentElement) : backgroundColor;
  };
  return [...document.querySelectorAll('h1, h2, h3, p, dt, dd, li, th, td, figcaption, svg text')]
    .filter((element) => {
      const style = getComputedStyle(element);
      const [a, b] = [element.tagName === 'text' ? style.fill : style.color, behind(element)].map(light);
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
    })
    .map((element) => element.textContent);
})()`;

/** The file loads no other file, fits wide and narrow windows, and is legible in light and dark. */
export async function assertLegible(t: TestContext, file: string, title: RegExp): Promise<void> {
  if (chromium === null) return t.diagnostic(`${file} was not opened: Chromium is not installed`);
  const url = pathToFileURL(file).href;
  const page = await openBrowser(t);
  for (const look of looks) {
    await page.open(url, look);
    const shown = JSON.stringify(look);
    assert.match(await page.evaluate<string>('document.title'), title);
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    assert.ok(width <= look.width, `${width} pixels wide: ${shown}`);
    assert.deepEqual(await page.evaluate(misplaced), [], shown);
    assert.deepEqual(await page.evaluate(faint), [], shown);
  }
  assert.deepEqual(page.requested, Array(looks.length).fill(url));
  assert.deepEqual(page.complaints, []);
}
