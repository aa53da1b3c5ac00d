/** Hears of a record of a hash that cannot be read. */
export type OnUnreadable = (error: unknown, field: string, stored: string) => void;

/** For who can do nothing without all of them. */
export const refuseUnreadable: OnUnreadable = (error) => {
  throw error;
};

/** The values of a hash that can be read; the others are reported. */
export function decodeEach<Value>(
  stored: Readonly<Record<string, string>>,
  decode: (field: string, text: string) => Value,
  onUnreadable: OnUnreadable,
): Value[] {
  return Object.entries(stored).flatMap(([field, text]) => {
    try {
      return [decode(field, text)];
    } catch (error) {
      onUnreadable(error, field, text);
      return [];
    }
  });
}
