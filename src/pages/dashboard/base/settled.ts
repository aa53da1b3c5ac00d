import { useEffect, useState } from 'preact/hooks';

/** The value after `ms` without a change, so that typing and dragging send few requests. */
export function useSettled<Value>(value: Value, ms: number): Value {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(() => value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
