// names [SECONDS] - C++ functions whose names need demangling, all in one chain of calls.
#include "work.h"

namespace outer {
namespace {

template <typename T> struct Box {
	NOINLINE void spin(T units) const
	{
		WORK(static_cast<unsigned long>(units));
	}
};

} // namespace

struct Caller {
	NOINLINE void operator()(int units)
	{
		auto lambda = [&](int n) __attribute__((noinline)) {
			Box<int>().spin(n);
			work_sink += 1;
		};

		lambda(units);
		work_sink += 1;
	}
};

} // namespace outer

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);

	while (seconds_worked() < seconds)
		outer::Caller()(20000);
	return 0;
}
