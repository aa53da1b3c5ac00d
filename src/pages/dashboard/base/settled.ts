import { useEffect, useState } from 'preact/hooks';

/** The value once it has stayed the same for `ms`: what somebody types or drags is asked for when they pause. */
export function useSettled<Value>(value: Value, ms: number): Value {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(() => value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
