import { useEffect, useState } from 'preact/hooks';

/** Limits the requests that typing and dragging cause. */
export function useSettled<Value>(value: Value, ms: number): Value {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(() => value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
