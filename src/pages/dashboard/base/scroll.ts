import { readEntryState, writeEntryState } from './entry-state.js';

/** Limits the wait for a page that has become shorter. */
const maxWaitMs = 5000;

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
  const observer = new ResizeObserver(() => {
    scrollTo(0, y);
    if (Math.abs(scrollY - y) <= 1) observer.disconnect();
  });
  const stop = (): void => observer.disconnect();
  addEventListener('wheel', stop, { once: true });
  setTimeout(stop, maxWaitMs);
  observer.observe(document.body);
}
