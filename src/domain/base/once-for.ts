/** `make`, computed once for each object and kept as long as the object lives. */
export function onceFor<Key extends object, Value extends object>(make: (key: Key) => Value) {
  const known = new WeakMap<Key, Value>();
  return (key: Key): Value => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(key);
    known.set(key, made);
    return made;
  };
}
