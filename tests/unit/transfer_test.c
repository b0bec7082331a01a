/* transfer_test.c - headers and trailers of answers (transfer.h); whole transfers are push_test's. */
#include "sink_check.h"

#include "net/transfer.h"

static struct sink_answer header(const char *line)
{
	cleanup(freep_cleanup) char *exact = malloc(strlen(line) + 1);
	struct sink_answer a = { .grpc_status = -1 };

	memcpy(exact, line, strlen(line));	/* no NUL: a sanitizer sees reads behind it */
	transfer_header(&a, exact, strlen(line));
	return a;
}

START_TEST(reads_status)
{
	ck_assert_int_eq(header("grpc-status: 0\r\n").grpc_status, 0);
	ck_assert_int_eq(header("Grpc-Status:13\r\n").grpc_status, 13);
	ck_assert_int_eq(header("grpc-status: 999").grpc_status, 999);
	ck_assert_int_eq(header("grpc-status: 99999999999999999999").grpc_status, -1);
	ck_assert_int_eq(header("grpc-status: 1x").grpc_status, -1);
	ck_assert_int_eq(header("grpc-status: -1").grpc_status, -1);
	ck_assert_int_eq(header("grpc-status:").grpc_status, -1);
	ck_assert_int_eq(header("grpc-statu").grpc_status, -1);
	ck_assert_int_eq(header("\r\n").grpc_status, -1);
	ck_assert_int_eq(header("").grpc_status, -1);
}
END_TEST

START_TEST(reads_message)
{
	char line[2048] = "grpc-message: ";
	struct sink_answer a = header("grpc-message: 100%25 \xc3\xa9%C3%A9 %zz %4 %\r\n");

	ck_assert_str_eq(a.grpc_message, "100% \u00e9\u00e9 %zz %4 %");
	a = header("grpc-message:%00%1b[31m%ff\n");
	ck_assert_str_eq(a.grpc_message, "??[31m\ufffd");
	memset(line + strlen(line), 'x', 1500);
	a = header(line);
	ck_assert_uint_eq(strlen(a.grpc_message), sizeof(a.grpc_message) - 1);
}
END_TEST

RUN_ALL("transfer", reads_status, reads_message)
