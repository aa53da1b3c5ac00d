import { useEffect, useRef, useState } from 'preact/hooks';

/** Calls the current `run` every `ms`. Null stops. */
export function useInterval(run: () => void, ms: number | null): void {
  const current = useRef(run);
  current.current = run;
  useEffect(() => {
    if (ms === null) return;
    const timer = setInterval(() => current.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

/** Unix milliseconds. Draws the component again every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useInterval(() => setNow(Date.now()), 1000);
  return now;
}
