import { readEntryState, writeEntryState } from './entry-state.js';

/** The page grows while its data are loading. */
const maxLoadMs = 5000;

/** For "back": the page returns to this position when its data are loaded. */
export const saveScrollPosition = (): void => writeEntryState('scrollY', scrollY);

export const isNewEntry = (): boolean => readEntryState('scrollY') === undefined;

export function keepScrollPositions(): void {
  history.scrollRestoration = 'manual';
  addEventListener('click', saveScrollPosition, true);
  addEventListener('popstate', restoreScrollPosition);
  restoreScrollPosition();
}

function restoreScrollPosition(): void {
  if (isNewEntry()) return;
  const y = readEntryState('scrollY') as number;
  const observer = new ResizeObserver(() => scrollTo(0, y));
  const stop = (): void => observer.disconnect();
  for (const input of ['wheel', 'pointerdown', 'keydown']) addEventListener(input, stop, { once: true });
  setTimeout(stop, maxLoadMs);
  observer.observe(document.body);
}
