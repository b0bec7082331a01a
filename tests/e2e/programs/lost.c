/* lost.c - spends its time in a function that nothing describes: no call frame information, a stack
 * pointer that its code doesn't tell, and no frame pointer. The argument is the number of seconds. */
#include <stdlib.h>
#include <unistd.h>

__asm__(".text\n.globl lost\n.type lost, @function\nlost:\n"
	"	mov %rsp, %r11\n"
	"	and $-64, %rsp\n"
	"	sub $64, %rsp\n"
	"	mov $1, %ebp\n"
	"1:	jmp 1b\n"
	".size lost, . - lost\n");
void lost(void);

int main(int argc, char **argv)
{
	alarm(argc > 1 ? (unsigned int)atoi(argv[1]) : 1);
	lost();
}
