/** The values of a field in the order of the list. */
export const valuesOf = <Name extends string, Value>(
  list: readonly { readonly [name in Name]: Value }[],
  name: Name,
): Value[] => list.map((one) => one[name]);
