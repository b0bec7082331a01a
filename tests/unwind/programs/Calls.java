/* Calls.java - interpreted and compiled code, streams, exceptions, the garbage collector; the argument is
 * the number of seconds. */
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

public class Calls {
	interface Shape { double area(); }

	static int fibonacci(int n) {
		return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
	}

	static int descend(int n) {
		if (n == 0)
			throw new IllegalStateException("bottom");
		try {
			return descend(n - 1);
		} finally {
			count++;
		}
	}

	static int count;

	static int round(int n) {
		Map<String, Shape> m = new HashMap<>();
		for (int i = 0; i < 200; i++) {
			double side = i;
			m.put(String.valueOf(i * n), () -> side * side);
		}
		String all = m.entrySet().stream()
			.sorted((a, b) -> Double.compare(a.getValue().area(), b.getValue().area()))
			.map(Map.Entry::getKey).collect(Collectors.joining(","));
		try {
			descend(30);
		} catch (IllegalStateException e) {
			count++;
		}
		return fibonacci(18) + all.length() + IntStream.range(0, 1000).map(i -> i ^ n).sum();
	}

	public static void main(String[] args) {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		int sum = 0;
		while (System.nanoTime() < end)
			sum += round(Math.floorMod(sum, 7) + 1);
		System.out.println(sum % 2);
	}
}
