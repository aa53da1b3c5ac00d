/** `make`, computed once for each object and kept as long as the object lives. */
export function onceFor<Key extends object, Value extends object>(make: (key: Key) => Value) {
  const known = new WeakMap<Key, Value>();
  return (key: Key): Value => {
    const value = known.get(key) ?? make(key);
    known.set(key, value);
    return value;
  };
}
